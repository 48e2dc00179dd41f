#include "shared.h"

#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define load(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define store(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define swap(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define set_bits(p, v) __atomic_or_fetch((p), (v), __ATOMIC_SEQ_CST)
#define clear_bits(p, v) __atomic_and_fetch((p), ~(v), __ATOMIC_SEQ_CST)

/* Sleeps while *word is still seen. The memory is shared between processes, so
 * the futex is not a private one. */
static void futex_wait(uint32_t *word, uint32_t seen)
{
	syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static bool compare_and_swap(uint64_t *p, uint64_t old, uint64_t new)
{
	return __atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static size_t shared_size(uint32_t jobs)
{
	return sizeof(struct ephpm_pool) + EPHPM_SLOTS * sizeof(struct ephpm_slot)
		+ (size_t)jobs * (sizeof(struct ephpm_job) + EPHPM_AREA_SIZE);
}

bool ephpm_shared_map(struct ephpm_shared *s, int fd, int doorbell)
{
	struct stat st;

	if (fstat(fd, &st) != 0 || (size_t)st.st_size < sizeof(struct ephpm_pool)) {
		return false;
	}
	uint8_t *base = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		return false;
	}
	s->pool = (struct ephpm_pool *)base;
	if (s->pool->magic != EPHPM_MAGIC || (size_t)st.st_size < shared_size(s->pool->jobs)) {
		return false;
	}
	s->slots = (struct ephpm_slot *)(base + sizeof(struct ephpm_pool));
	s->jobs = (struct ephpm_job *)(s->slots + EPHPM_SLOTS);
	s->areas = (uint8_t *)(s->jobs + s->pool->jobs);
	s->doorbell = doorbell;
	s->short_waits = 0;
	return true;
}

static uint64_t job_state(uint32_t generation, uint32_t slot, uint32_t state)
{
	return (uint64_t)generation << 32 | slot << 8 | state;
}

/* Claims the oldest job of a queue. The claim is the change of the job's state;
 * moving the head afterwards may be done by any worker that comes by. */
static struct ephpm_job *claim(struct ephpm_shared *s, struct ephpm_queue *q, uint32_t slot)
{
	for (;;) {
		uint64_t head = load(&q->head);
		if (head == load(&q->tail)) {
			return NULL;
		}
		uint64_t entry = load(&q->entry[head % EPHPM_QUEUE]);
		uint32_t index = (uint32_t)entry;
		uint32_t generation = entry >> 32;
		if (index >= s->pool->jobs) {
			_exit(EPHPM_EXIT_BROKEN);
		}
		struct ephpm_job *job = &s->jobs[index];
		bool mine = compare_and_swap(&job->state, job_state(generation, 0, EPHPM_JOB_READY),
			job_state(generation, slot, EPHPM_JOB_TAKEN));
		compare_and_swap(&q->head, head, head + 1);
		if (mine) {
			return job;
		}
	}
}

static bool queue_empty(struct ephpm_queue *q)
{
	return load(&q->head) == load(&q->tail);
}

static bool has_work(struct ephpm_shared *s, const struct ephpm_slot *me)
{
	for (uint32_t c = 0; c < EPHPM_CLASSES; c++) {
		if ((me->classes & 1u << c) && !queue_empty(&s->pool->queue[c])) {
			return true;
		}
	}
	return false;
}

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static bool others_look(const struct ephpm_shared *s)
{
	for (uint32_t i = 0; i < EPHPM_SLOT_WORDS; i++) {
		if (load(&s->pool->lookers[i])) {
			return true;
		}
	}
	return false;
}

/* Looks for work before it sleeps, for the next job often comes within the time
 * that falling asleep and being woken would take. Others who want the CPU get it.
 * One worker is enough for that: it says that it looks, and the front wakes nobody
 * for what it will see. */
static bool look(struct ephpm_shared *s, uint32_t slot, uint64_t until)
{
	struct ephpm_slot *me = &s->slots[slot];
	uint64_t *word = &s->pool->lookers[slot / 64];
	uint64_t bit = 1ull << (slot % 64);
	bool found = false;

	if (others_look(s)) {
		return false;
	}
	set_bits(word, bit);
	for (int i = 0; !(found = has_work(s, me)) && !load(&me->stop); i++) {
		if (i >= EPHPM_LOOKS && monotonic_ns() >= until) {
			break;
		}
		sched_yield();
	}
	clear_bits(word, bit);
	return found;
}

/* Sleeps until the front rings this slot, unless there is work already. The bit
 * is set before the queues are looked at, and the front looks at the bit after
 * it has queued: one of the two sees the other. */
static void nap(struct ephpm_shared *s, uint32_t slot)
{
	struct ephpm_slot *me = &s->slots[slot];
	uint64_t *word = &s->pool->sleepers[slot / 64];
	uint64_t bit = 1ull << (slot % 64);
	uint32_t seen = load(&me->wake);

	set_bits(word, bit);
	if (!has_work(s, me) && !load(&me->stop)) {
		futex_wait(&me->wake, seen);
	}
	clear_bits(word, bit);
}

static void open_work(struct ephpm_shared *s, struct ephpm_job *job, struct ephpm_work *w)
{
	store(&job->taken_at, monotonic_ns());
	w->job = job;
	w->index = job - s->jobs;
	uint8_t *area = s->areas + (size_t)w->index * EPHPM_AREA_SIZE;
	w->request = area;
	w->response = area + EPHPM_REQUEST_SIZE;
	w->answer = area + EPHPM_REQUEST_SIZE + EPHPM_RESPONSE_SIZE;
	w->tail = load(&job->out_tail);
	w->answers = load(&job->answers);
	w->body_here = job->body_here;
	w->body_taken = 0;
	w->body_ahead = job->body_len - job->body_here;
}

/* Waits for work, and looks for longer when it had to wait for little of late:
 * that is how it is when one client asks again and again. */
static void wait_work(struct ephpm_shared *s, uint32_t slot, uint32_t *short_waits)
{
	uint64_t start = monotonic_ns();
	uint64_t patience = s->pool->patience_ns;

	if (!look(s, slot, *short_waits >= EPHPM_PATIENCE_AFTER ? start + patience : 0)) {
		nap(s, slot);
		*short_waits = monotonic_ns() - start < patience ? *short_waits + 1 : 0;
	}
}

bool ephpm_shared_take(struct ephpm_shared *s, uint32_t slot, uint32_t *turn, struct ephpm_work *w)
{
	struct ephpm_slot *me = &s->slots[slot];

	while (!load(&me->stop)) {
		for (uint32_t i = 0; i < EPHPM_CLASSES; i++) {
			uint32_t c = (*turn + i) % EPHPM_CLASSES;
			if (!(me->classes & 1u << c)) {
				continue;
			}
			struct ephpm_job *job = claim(s, &s->pool->queue[c], slot);
			if (job) {
				*turn = c + 1;
				store(&me->job, (uint32_t)(job - s->jobs) + 1);
				store(&me->generation, (uint32_t)(load(&job->state) >> 32));
				open_work(s, job, w);
				return true;
			}
		}
		wait_work(s, slot, &s->short_waits);
	}
	return false;
}

void ephpm_work_done(struct ephpm_work *w, uint32_t slot)
{
	uint64_t state = load(&w->job->state);
	uint32_t generation = state >> 32;

	if (!compare_and_swap(&w->job->state, job_state(generation, slot, EPHPM_JOB_TAKEN),
			job_state(generation, slot, EPHPM_JOB_DONE))) {
		for (;;) {
			pause();
		}
	}
}

void ephpm_work_publish(struct ephpm_work *w)
{
	store(&w->job->out_tail, w->tail);
}

void ephpm_work_notify(struct ephpm_shared *s, struct ephpm_work *w)
{
	uint64_t one = 1;

	ephpm_work_publish(w);
	if (!swap(&w->job->front_waits, 0)) {
		return;
	}
	set_bits(&s->pool->done[w->index / 64], 1ull << (w->index % 64));
	if (swap(&s->pool->completer_asleep, 0) && write(s->doorbell, &one, sizeof(one)) < 0) {
		_exit(EPHPM_EXIT_BROKEN); /* a front without doorbell is no front */
	}
}

static size_t room(const struct ephpm_work *w)
{
	return EPHPM_RESPONSE_SIZE - (w->tail - load(&w->job->out_head));
}

/* Waits until the front has taken something out of the full ring. */
static void wait_room(struct ephpm_shared *s, struct ephpm_work *w)
{
	ephpm_work_notify(s, w);
	while (!room(w)) {
		uint32_t seen = load(&w->job->bell);
		store(&w->job->worker_waits, 1);
		if (!room(w)) {
			futex_wait(&w->job->bell, seen);
		}
	}
	store(&w->job->worker_waits, 0);
}

void ephpm_work_write(struct ephpm_shared *s, struct ephpm_work *w, const void *data, size_t len)
{
	const uint8_t *from = data;

	while (len) {
		size_t n = room(w);
		if (!n) {
			wait_room(s, w);
			continue;
		}
		size_t at = w->tail % EPHPM_RESPONSE_SIZE;
		if (n > EPHPM_RESPONSE_SIZE - at) {
			n = EPHPM_RESPONSE_SIZE - at;
		}
		if (n > len) {
			n = len;
		}
		memcpy(w->response + at, from, n);
		w->tail += n;
		from += n;
		len -= n;
	}
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Looks out for the answer for about as long as falling asleep and being woken
 * take, if there is another processor for the front. */
static void look_for_answer(const struct ephpm_shared *s, const struct ephpm_work *w)
{
	if (s->pool->patience_ns) {
		for (int i = 0; i < EPHPM_ANSWER_LOOKS && load(&w->job->answers) == w->answers; i++) {
			relax();
		}
	}
}

uint32_t ephpm_work_answer(const struct ephpm_shared *s, struct ephpm_work *w)
{
	look_for_answer(s, w);
	while (load(&w->job->answers) == w->answers) {
		uint32_t seen = load(&w->job->bell);
		store(&w->job->worker_waits, 1);
		if (load(&w->job->answers) == w->answers) {
			futex_wait(&w->job->bell, seen);
		}
	}
	store(&w->job->worker_waits, 0);
	w->answers++;
	return load(&w->job->answer_len);
}

uint32_t ephpm_work_post_max(const struct ephpm_work *w)
{
	return load(&w->job->post_max);
}

bool ephpm_work_aborted(const struct ephpm_work *w)
{
	return load(&w->job->aborted) != 0;
}
