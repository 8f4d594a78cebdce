/* One gated call in the ledger, explored in every interleaving: `docs/model/check.sh` (needs spin and gcc).

   There are two replicas, each of which may crash anywhere or lose its lease while it lives on, two people who decide
   differently, the clock, and a person who settles what nobody can know. A d_step is one of the scripts in
   approvals/sayso_approvals/scripts; between two of them anything may happen. Scripts and model change together.

   Held: S1 at most one execution, and one more for each ordered retry. S2 none without an approval. S3 a verdict stays
   as it was given, until it is taken back because nothing came of it (reopen, unsent). S4 when nothing can move, the
   call is done. S5 nothing is sent once a person has closed the call. */
#define NONE 0
#define STARTED 1
#define FINISHED 2
#define UNKNOWN 3

#define OPEN 0
#define APPROVED 1
#define REJECTED 2
#define EXPIRED 3

#ifndef CRASHES
#define CRASHES 2
#endif

byte verdict = OPEN;        /* of the call */
byte firstVerdict = OPEN;   /* witness for S3 */
byte journal = NONE;
byte startToken = 0;        /* the token that started the call */
byte token = 0;             /* fencing token of the current claim; 0: never claimed */
bool leased = false;        /* the current claim's lease still holds */
bool done = false;
byte executed = 0;          /* witness outside of the ledger */
byte retries = 0;           /* ordered by a person */
bool modelTold = false;     /* the model has the result or the refusal */
byte crashes = 0;
byte reopened = 0;          /* verdicts that were not consumed, or whose call could certainly not be sent */
byte sending = 0;           /* replicas that have checked their lease and may still send the call */
bool settled = false;       /* a person closed the call without a retry */

inline setVerdict(v) { assert(firstVerdict == OPEN); verdict = v; firstVerdict = v }   /* S3 */

proctype Decider(byte v) {
  d_step { if :: verdict == OPEN -> setVerdict(v) :: else -> skip fi };   /* the loser hears the verdict */
end:
  do :: d_step { reopened > 0 && verdict == OPEN -> setVerdict(v) } od   /* a call that is open again is decided again */
}

proctype Clock() {
  d_step { if :: verdict == OPEN -> setVerdict(EXPIRED) :: else -> skip fi }
}

/* A lease can run out at any moment while its owner is still alive: that is what a stopped process looks like. */
active proctype LeaseEnds() {
  byte n = 0;
end:
  do
  :: atomic { leased && n < 2 -> leased = false; n++ }
  od
}

/* A person settles an unknown outcome: gives the result (or abandons), or orders a retry. Refused until lease and tool
   time-out have passed since the start, so that nobody who passed the check below can still send: sending == 0. */
active proctype Person() {
end:
  do
  :: d_step { journal == UNKNOWN && sending == 0 -> journal = FINISHED; settled = true }
  :: d_step { journal == UNKNOWN && sending == 0 && retries < 1 -> journal = NONE; startToken = 0; retries++ }
  od
}

#define maybeCrash  if :: crashes < CRASHES -> d_step { crashes++; if :: mine == token -> leased = false :: else -> skip fi }; goto start :: true -> skip fi

active [2] proctype Replica() {
  byte mine = 0; bool mayRun = false; byte j;
start:
  mine = 0; mayRun = false;
  /* claim: only what is decided, not done, not leased, and not waiting for a person */
end_claim:
  d_step { verdict != OPEN && !done && !leased && journal != UNKNOWN ->
           token++; mine = token; leased = true }
  maybeCrash;
  if
  :: verdict == APPROVED ->
     /* begin: the claim must still be ours */
     d_step {
       if
       :: mine != token || !leased -> mayRun = false; j = 9
       :: else ->
          j = journal;
          if
          :: journal == NONE    -> journal = STARTED; startToken = mine; mayRun = true
          :: journal == STARTED -> journal = UNKNOWN; leased = false; mayRun = false
          :: else -> mayRun = false
          fi
       fi
     }
     if :: j == 9 || j == STARTED || j == UNKNOWN -> goto start :: else -> skip fi;
     if
     :: mayRun ->
        maybeCrash;
        /* unsent: the request certainly did not leave; the start is taken back and the call is open again */
        if :: d_step { reopened < 1 && mine == token && leased && journal == STARTED && startToken == mine ->
                       journal = NONE; startToken = 0; verdict = OPEN; firstVerdict = OPEN; leased = false; reopened++ };
              goto start
           :: true -> skip fi;
        /* just before sending: our lease, by our own clock and with a margin, still holds */
        d_step { if :: mine == token && leased -> sending++; mayRun = true :: else -> mayRun = false fi }
        if :: !mayRun -> goto start :: else -> skip fi;
        if :: crashes < CRASHES -> d_step { crashes++; sending--; if :: mine == token -> leased = false :: else -> skip fi }; goto start :: true -> skip fi;
        d_step { executed++; sending--; assert(!settled); assert(verdict == APPROVED); assert(executed <= 1 + retries) }  /* the tool, outside of every script: S2, S1 */
        maybeCrash;
        /* finish: a fact is a fact, even if the lease is gone, as long as this start still counts */
        d_step { if :: (journal == STARTED || journal == UNKNOWN) && startToken == mine -> journal = FINISHED :: else -> skip fi }
     :: else -> skip
     fi
  :: else -> skip
  fi;
  maybeCrash;
  /* reopen: the answer was not consumed and nothing was started */
  if :: d_step { reopened < 1 && mine == token && leased && journal == NONE && verdict == APPROVED ->
                 verdict = OPEN; firstVerdict = OPEN; leased = false; reopened++ };
        goto start
     :: true -> skip fi;
  /* complete: told to the model once, by whoever holds the claim */
  d_step { if :: mine == token && leased && (verdict != APPROVED || journal == FINISHED) -> assert(!modelTold); done = true; modelTold = true; leased = false
             :: else -> skip fi }
  goto start
}

init { run Decider(APPROVED); run Decider(REJECTED); run Clock() }

/* S4: when nothing else can move */
active proctype Monitor() { end: timeout -> assert(done) }

