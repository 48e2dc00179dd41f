/* What the front and its workers agree on: the layout of the shared memory,
 * the records in it, and the messages on the control socket. Both cgo and the
 * worker compile this file, so there is one list of types and numbers.
 *
 * The shared memory of a pool:
 *
 *	struct ephpm_pool                     queues, bitmaps
 *	struct ephpm_slot  [EPHPM_SLOTS]      one per worker
 *	struct ephpm_job   [jobs]             the control part of each job
 *	areas              [jobs]             request, response and answer bytes
 *
 * Every field that both sides touch is accessed atomically. The front checks
 * whatever it reads here; a worker trusts the front. */
#ifndef EPHPM_WIRE_H
#define EPHPM_WIRE_H

#include <stdint.h>

#define EPHPM_MAGIC 0x6570686d0001ull

/* Shares of the pool; phpbridge.Class. */
#define EPHPM_CLASSES 2

/* A pool has at most this many workers. */
#define EPHPM_SLOTS 1024
#define EPHPM_SLOT_WORDS (EPHPM_SLOTS / 64)

/* At most this many jobs of all classes. */
#define EPHPM_JOBS 4096
#define EPHPM_JOB_WORDS (EPHPM_JOBS / 64)

/* Entries of a queue: a power of two, more than there can be jobs, because
 * entries of withdrawn jobs stay until a worker passes them. */
#define EPHPM_QUEUE 8192

/* How often an idle worker yields and looks for work before it sleeps. */
#define EPHPM_LOOKS 3

/* A worker that had to wait for less than this, in nanoseconds, so many times in
 * a row looks for so long. */
#define EPHPM_PATIENCE_NS 400000
#define EPHPM_PATIENCE_AFTER 4

/* How often a worker looks for an answer before it sleeps. */
#define EPHPM_ANSWER_LOOKS 300

/* The areas of a job, in bytes. */
#define EPHPM_REQUEST_SIZE (256 * 1024)
#define EPHPM_RESPONSE_SIZE (128 * 1024) /* a ring: a power of two */
#define EPHPM_ANSWER_SIZE (64 * 1024)
#define EPHPM_AREA_SIZE (EPHPM_REQUEST_SIZE + EPHPM_RESPONSE_SIZE + EPHPM_ANSWER_SIZE)

/* The variables of a request leave this much of the request area to the body. */
#define EPHPM_BODY_MIN (64 * 1024)

/* A queue of jobs that wait for a worker. The front is the only producer. A
 * worker claims the job itself by compare-and-swap of its state and then moves
 * the head, which any other worker does for it if it dies in between: so a
 * death can neither lose an entry nor block the queue. */
struct ephpm_queue {
	uint64_t head; /* moved by workers */
	uint64_t pad0[7];
	uint64_t tail; /* moved by the front */
	uint64_t pad1[7];
	uint64_t entry[EPHPM_QUEUE]; /* generation << 32 | job */
};

struct ephpm_pool {
	uint64_t magic;
	uint32_t jobs;
	uint32_t max_requests; /* a worker ends after this many; 0: never */
	uint64_t pad0[6];
	uint64_t sleepers[EPHPM_SLOT_WORDS]; /* bit: the worker sleeps on slot.wake */
	uint64_t lookers[EPHPM_SLOT_WORDS];  /* bit: the worker looks for work, need not be woken */
	uint64_t done[EPHPM_JOB_WORDS];      /* bit: the job has news for the front */
	uint32_t completer_asleep;           /* 1: ring the eventfd after setting a bit */
	uint32_t stores;                     /* descriptors from EPHPM_FD_STORES on */
	uint32_t patience_ns;                /* EPHPM_PATIENCE_NS; 0 on a single processor */
	uint32_t pad1[13];
	struct ephpm_queue queue[EPHPM_CLASSES];
};

struct ephpm_slot {
	uint32_t wake;       /* futex; the front adds 1 to wake the worker */
	uint32_t classes;    /* bit mask of the classes it may take */
	uint32_t stop;       /* 1: end when idle */
	uint32_t job;        /* 1 + the job it runs or ran last; 0: none yet */
	uint64_t served;     /* requests since the fork */
	uint32_t generation; /* of that job */
	uint32_t pad0;
	uint64_t pad1[4];
};

/* The state of a job: generation << 32 | slot << 8 | one of these. A worker goes
 * from READY to TAKEN to DONE, the front from READY to FREE (withdrawn) or from
 * TAKEN to KILLED; as each step is a compare-and-swap, a request that ends at its
 * time limit is either answered or killed, and no other request is hit. */
#define EPHPM_JOB_FREE 0
#define EPHPM_JOB_READY 1  /* submitted, in a queue */
#define EPHPM_JOB_TAKEN 2  /* a worker runs it */
#define EPHPM_JOB_DONE 3   /* the worker is through; END follows */
#define EPHPM_JOB_KILLED 4 /* the front has sent the worker SIGKILL */

struct ephpm_job {
	uint64_t state;
	uint64_t taken_at; /* CLOCK_MONOTONIC, ns; written by the worker */

	uint32_t front_waits; /* 1: the goroutine sleeps; tell it by pool.done */
	uint32_t aborted;     /* 1: the client has gone */

	uint32_t bell;         /* futex; the front adds 1 on every answer and space */
	uint32_t worker_waits; /* 1: the worker sleeps on bell */

	uint64_t out_head; /* response ring, moved by the front */
	uint64_t out_tail; /* response ring, moved by the worker */

	uint32_t answers; /* answers to READ and CALL so far */
	uint32_t answer_len;

	/* The request, written by the front before READY. */
	uint32_t vars_len;  /* bytes of variables at the start of the request area */
	uint32_t body_off;  /* where body chunks are in the request area */
	uint32_t body_here; /* bytes of the body that are there from the start */
	uint32_t has_host;  /* 0: host calls throw */
	uint32_t seconds;   /* the time limit, for the message of PHP */
	uint32_t stop;      /* 1: EPHPM_SIGNAL_STOP is for this request */
	uint32_t more;      /* bytes of the answer that follow those in the answer area */
	uint32_t store;     /* 1 + the site's store, of those that the worker has mapped; 0: none */
	int64_t body_len;   /* bytes of the whole body */
	uint32_t env_len;   /* bytes of environment variables behind the variables */
	uint32_t ini_len;   /* bytes of ini settings behind those */
	uint32_t tenant;    /* whose request it is in a pool that several share; 0: nobody's */
	uint32_t post_max;  /* the longest payload that may be posted, in bytes; 0: none may */
	uint64_t pad[1];
};

/* A variable, environment variable or ini setting: EPHPM_VAR_HEADER bytes (u16 length of the name,
 * u32 length of the value), the name, NUL, the value, NUL. */
#define EPHPM_VAR_HEADER 6

/* A record from the worker to the front, in the response ring: u32 length of
 * the payload, u8 type, three zero bytes, the payload. Little endian. */
#define EPHPM_RECORD_HEADER 8

enum {
	EPHPM_REC_HEADERS = 1, /* u16 status, u16 n, n times u32 length and "Name: value" */
	EPHPM_REC_OUTPUT = 2,  /* body bytes */
	EPHPM_REC_FLUSH = 3,   /* empty: bring what is there to the client */
	EPHPM_REC_READ = 4,    /* empty: the next part of the body, please */
	EPHPM_REC_CALL = 5,    /* u16 function, u16 n, n values */
	EPHPM_REC_LOG = 6,     /* u8 syslog priority, text */
	EPHPM_REC_END = 7,     /* u8, 1 after a fatal error: the request is shut down */
	EPHPM_REC_INFORM = 8,  /* as HEADERS: an informational response, status 1xx */
	EPHPM_REC_FINISH = 9,  /* empty: the answer is complete, the script goes on */
	EPHPM_REC_NOTE = 10,   /* i32 slog level, u32 length, message, JSON or nothing */
	EPHPM_REC_READS = 16,  /* u64 hits, u64 misses, u64 n, n times u64 hash: of the site's store */
	EPHPM_REC_MORE = 15,   /* empty: the next part of the answer to CALL, please */
	EPHPM_REC_POST = 17,   /* as CALL, of EPHPM_CALL_WS_SEND: it is not answered */
};

/* Records of a remote caller, a process outside of the pool that makes host calls
 * over a Unix socket: the same header, and these in place of the above but CALL.
 * The caller says HELLO once and then CALL as often as it likes, each of which is
 * answered before the next is read. */
#define EPHPM_REMOTE_VERSION 1
enum {
	EPHPM_REC_HELLO = 32,   /* u16 version, name of the site or nothing for the only one */
	EPHPM_REC_WELCOME = 33, /* u16 version */
	EPHPM_REC_REFUSED = 34, /* text: why; the front ends the connection */
	EPHPM_REC_ANSWER = 35,  /* a value */
};

/* The largest payload of a record but OUTPUT, in bytes. */
#define EPHPM_HEADERS_MAX (1024 * 1024)
#define EPHPM_CALL_MAX (64 * 1024 * 1024)
#define EPHPM_POST_MAX (EPHPM_RESPONSE_SIZE / 4)
#define EPHPM_LOG_MAX (64 * 1024)

/* Values in calls and answers: u8 kind, then what follows it. */
enum {
	EPHPM_VAL_NULL = 0,
	EPHPM_VAL_FALSE = 1,
	EPHPM_VAL_TRUE = 2,
	EPHPM_VAL_INT = 3,    /* i64 */
	EPHPM_VAL_STRING = 4, /* u32 length, bytes */
	EPHPM_VAL_LIST = 5,   /* u32 n, n times u32 length and bytes */
	EPHPM_VAL_THROW = 6,  /* u8 class, u32 length, message */
	EPHPM_VAL_ARRAY = 7,  /* u32 n, n times key and value; a null key appends */
};

/* Classes of a thrown answer. */
enum {
	EPHPM_THROW_EXCEPTION = 0,
	EPHPM_THROW_VALUE_ERROR = 1,
	EPHPM_THROW_ERROR = 2,
};

/* Host calls; phpbridge.Func. Their signatures are in call.go. */
enum {
	EPHPM_CALL_WS_SEND = 1,
	EPHPM_CALL_WS_CONNECTION_SEND = 2,
	EPHPM_CALL_WS_SUBSCRIBE = 3,
	EPHPM_CALL_WS_CONNECTION_SUBSCRIBE = 4,
	EPHPM_CALL_WS_UNSUBSCRIBE = 5,
	EPHPM_CALL_WS_CONNECTION_UNSUBSCRIBE = 6,
	EPHPM_CALL_WS_BROADCAST = 7,
	EPHPM_CALL_WS_CLOSE = 8,
	EPHPM_CALL_WS_CONNECTION_CLOSE = 9,
	EPHPM_CALL_WS_COUNT = 10,
	EPHPM_CALL_WS_MEMBERS = 11,

	EPHPM_CALL_KV_GET = 32,
	EPHPM_CALL_KV_SET = 33,
	EPHPM_CALL_KV_SETNX = 34,
	EPHPM_CALL_KV_DEL = 35,
	EPHPM_CALL_KV_EXISTS = 36,
	EPHPM_CALL_KV_INCR_BY = 37,
	EPHPM_CALL_KV_EXPIRE = 38,
	EPHPM_CALL_KV_TTL = 39,
	EPHPM_CALL_KV_FLUSH_ALL = 40,
	EPHPM_CALL_KV_WAIT = 41,
	EPHPM_CALL_KV_MGET = 42,
	EPHPM_CALL_KV_MSET = 43,
	EPHPM_CALL_KV_GETSET = 44,
	EPHPM_CALL_KV_APPEND = 45,
	EPHPM_CALL_KV_HSET = 46,
	EPHPM_CALL_KV_HGET = 47,
	EPHPM_CALL_KV_HDEL = 48,
	EPHPM_CALL_KV_HGETALL = 49,
	EPHPM_CALL_KV_HINCRBY = 50,
	EPHPM_CALL_KV_CAS = 51,
	EPHPM_CALL_KV_LOCK = 52,
	EPHPM_CALL_KV_UNLOCK = 53,
	EPHPM_CALL_KV_SCAN = 54,
	EPHPM_CALL_KV_READS = 55,
	EPHPM_CALL_KV_MONITOR = 56,

	EPHPM_CALL_SESSION_OPEN = 64,
	EPHPM_CALL_SESSION_WRITE = 65,
	EPHPM_CALL_SESSION_TOUCH = 66,
	EPHPM_CALL_SESSION_CLOSE = 67,
	EPHPM_CALL_SESSION_DESTROY = 68,
	EPHPM_CALL_SESSION_EXISTS = 69,
};

/* The control socket (SOCK_SEQPACKET) between front and zygote. Each message
 * is this struct; some carry text behind it. */
struct ephpm_message {
	uint32_t type;
	uint32_t slot;
	uint32_t generation; /* of the worker in the slot */
	int32_t value;       /* FORKED: pid; DIED: wait status; KILL: signal */
};

/* The longest text of CONFIG. */
#define EPHPM_CONFIG_MAX (96 * 1024)

enum {
	/* front to zygote */
	EPHPM_MSG_CONFIG = 1, /* NUL-terminated: SAPI name, php.ini file, ini entries, names in Env,
							 disabled functions, "1" for no_new_privs */
	EPHPM_MSG_FORK = 2,   /* text: its directory for uploads; its stderr as SCM_RIGHTS */
	EPHPM_MSG_KILL = 3,
	EPHPM_MSG_TRACE = 8,    /* value: the job that the worker should have */
	EPHPM_MSG_OPCACHE = 10, /* generation: a number for the answer */
	/* zygote to front */
	EPHPM_MSG_READY = 4,  /* PHP version, NUL, '1' if OPcache runs or '0', NUL, upload_tmp_dir */
	EPHPM_MSG_FAILED = 5, /* text: why */
	EPHPM_MSG_FORKED = 6, /* value -1: fork failed */
	EPHPM_MSG_DIED = 7,
	EPHPM_MSG_TRACED = 9,    /* text: the backtrace, a line a frame */
	EPHPM_MSG_OPCACHED = 11, /* generation as asked; struct ephpm_opcache, or nothing without one */
	EPHPM_MSG_EMPTIED = 12,  /* OPcache was emptied */
	EPHPM_MSG_STUCK = 13,    /* OPcache is to be emptied, but scripts use it on and on */
};

/* What OPcache's memory holds: bytes, counts, and totals since it was made or
 * restarted. */
struct ephpm_opcache {
	uint64_t used, free, wasted;
	uint64_t strings_used, strings_free; /* of used: interned strings */
	uint64_t scripts, keys, max_keys;
	uint64_t hits, misses;
	uint64_t oom_restarts, hash_restarts, manual_restarts;
	uint64_t jit_size, jit_free;
};

/* Descriptors of the zygote at its start; the stores are the last of them. */
#define EPHPM_FD_CONTROL 3
#define EPHPM_FD_SHARED 4
#define EPHPM_FD_DOORBELL 5
#define EPHPM_FD_STORES 6

/* Tells a worker to end its script with PHP's error for time limits, if the
 * job says stop. Relative to SIGRTMAX. */
#define EPHPM_SIGNAL_STOP 1
#define EPHPM_SIGNAL_TICK 2

#define EPHPM_ROLE_VARIABLE "EPHPM_PROCESS_ROLE"
#define EPHPM_PRELOAD_VARIABLE "EPHPM_SAVED_LD_PRELOAD"

/* Exit statuses of a worker that ends by itself. */
#define EPHPM_EXIT_STOPPED 0
#define EPHPM_EXIT_RECYCLED 10
#define EPHPM_EXIT_BROKEN 11 /* the shared memory made no sense */

#endif
