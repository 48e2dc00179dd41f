#include "kvread.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "need.h"
#include "record.h"

/* The layout of the memory, which the front alone writes; the file layout.go of
 * package kv describes it. A test holds the two equal. */
#define MAGIC 0x6570686d6b760001ull
#define OFF_MAGIC 0
#define OFF_K0 8
#define OFF_K1 16
#define OFF_BUCKETS 24
#define OFF_TOUCH 28
#define OFF_MONITORED 56
#define STRIPES_AT 4096
#define STRIPES 1024
#define BUCKETS_AT (STRIPES_AT + 4 * STRIPES)
#define ENTRY_HEADER 40
#define ENT_NEXT 0
#define ENT_HASH 4
#define ENT_VALUE 12
#define ENT_KEY 16
#define ENT_KIND 18
#define ENT_CODING 19
#define ENT_EXPIRY 32
#define MAX_CHAIN 4096
#define KIND_STRING 0
#define KIND_HASH 1

/* How often a read is tried while the front writes beside it. */
#define TRIES 100

/* Reads whose keys the eviction policy will hear of, at most at a time. */
#define TOUCHED_MAX 256

/* What was read since the last report. */
static struct {
	uint64_t hits, misses;
	uint64_t count;
	uint64_t hashes[TOUCHED_MAX];
} reads;

bool ephpm_kv_map(int first, uint32_t count)
{
	ephpm_worker.stores = calloc(count ? count : 1, sizeof(struct ephpm_store)); /* for ever */
	if (!ephpm_worker.stores) {
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		struct stat st;
		int fd = first + (int)i;
		if (fstat(fd, &st) != 0 || st.st_size <= BUCKETS_AT) {
			return false;
		}
		void *base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
		if (base == MAP_FAILED) {
			return false;
		}
		ephpm_worker.stores[i] = (struct ephpm_store){base, (uint64_t)st.st_size};
	}
	ephpm_worker.store_count = count;
	return true;
}

static uint64_t rotate(uint64_t v, int by)
{
	return v << by | v >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

/* SipHash-1-3. */
static uint64_t sip_hash(uint64_t k0, uint64_t k1, const char *p, size_t len)
{
	uint64_t v[4] = {k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull,
		k0 ^ 0x6c7967656e657261ull, k1 ^ 0x7465646279746573ull};
	uint64_t last = (uint64_t)len << 56, word;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&word, p, sizeof(word));
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	for (size_t i = 0; i < len; i++) {
		last |= (uint64_t)(uint8_t)p[i] << (8 * i);
	}
	v[3] ^= last;
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	sip_round(v);
	sip_round(v);
	sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t load64(const uint8_t *p)
{
	return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
}

static uint32_t load32(const uint8_t *p)
{
	return __atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED);
}

/* An entry that was found, as its header says. */
struct entry {
	const uint8_t *value;
	uint32_t len;
	uint8_t kind, coding;
	int64_t expires; /* Unix time in milliseconds; 0: never */
};

/* Reads an entry's header, if its key is this one. False if what it says does not
 * fit the memory. */
static bool read_entry(const struct ephpm_store *s, uint64_t at, const zend_string *key,
	uint32_t hash, bool *mine, struct entry *e)
{
	if (at + ENTRY_HEADER > s->size) {
		return false;
	}
	const uint8_t *p = s->base + at;
	uint16_t key_len = __atomic_load_n((const uint16_t *)(p + ENT_KEY), __ATOMIC_RELAXED);
	e->len = load32(p + ENT_VALUE);
	if (at + ENTRY_HEADER + key_len + (uint64_t)e->len > s->size) {
		return false;
	}
	*mine = load32(p + ENT_HASH) == hash && key_len == ZSTR_LEN(key)
		&& !memcmp(p + ENTRY_HEADER, ZSTR_VAL(key), key_len);
	if (*mine) {
		e->value = p + ENTRY_HEADER + key_len;
		e->kind = p[ENT_KIND];
		e->coding = p[ENT_CODING];
		e->expires = (int64_t)load64(p + ENT_EXPIRY);
	}
	return true;
}

/* Follows the chain of a bucket. False if what is there makes no sense, which
 * happens while the front writes. */
static bool find(const struct ephpm_store *s, const zend_string *key, uint32_t hash, bool *found,
	struct entry *e)
{
	uint32_t buckets = load32(s->base + OFF_BUCKETS), mask = 1;

	*found = false;
	if (!buckets || BUCKETS_AT + 4 * (uint64_t)buckets > s->size) {
		return false;
	}
	while (mask < buckets) {
		mask <<= 1;
	}
	uint32_t i = hash & (mask - 1);
	if (i >= buckets) {
		i &= (mask >> 1) - 1;
	}
	uint32_t ref = load32(s->base + BUCKETS_AT + 4 * (uint64_t)i);
	for (int n = 0; ref && n < MAX_CHAIN; n++) {
		uint64_t at = (uint64_t)ref << 3;
		if (!read_entry(s, at, key, hash, found, e)) {
			return false;
		}
		if (*found) {
			return true;
		}
		ref = load32(s->base + at + ENT_NEXT);
	}
	return ref == 0;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool unchanged(const uint32_t *stripe, uint32_t before)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(stripe, __ATOMIC_RELAXED) == before;
}

/* One try. The front may write at any time: what was read counts only if the
 * stripe's number is the same before and after, and nothing is allocated by a
 * length before that is known. False: try again. */
static bool try_read(const struct ephpm_store *s, const zend_string *key, uint32_t hash,
	enum ephpm_kv_result *result, zend_string **value)
{
	const uint32_t *stripe = (const uint32_t *)(s->base + STRIPES_AT) + hash % STRIPES;
	uint32_t before = __atomic_load_n(stripe, __ATOMIC_ACQUIRE);
	struct entry e;
	bool found;

	if (before & 1 || !find(s, key, hash, &found, &e) || !unchanged(stripe, before)) {
		return false;
	}
	if (!found || (e.expires && e.expires <= now_ms())) {
		*result = EPHPM_KV_ABSENT;
		return true;
	}
	if (e.kind != KIND_STRING || e.coding) {
		*result = e.kind == KIND_HASH ? EPHPM_KV_HASH : EPHPM_KV_ASK;
		return true;
	}
	ephpm_need(e.len);
	zend_string *copy = zend_string_alloc(e.len, 0);
	memcpy(ZSTR_VAL(copy), e.value, e.len);
	ZSTR_VAL(copy)[e.len] = 0;
	if (!unchanged(stripe, before)) {
		zend_string_efree(copy);
		return false;
	}
	*value = copy;
	*result = EPHPM_KV_FOUND;
	return true;
}

static void note(const struct ephpm_store *s, uint64_t hash, bool hit)
{
	if (!hit) {
		reads.misses++;
		return;
	}
	reads.hits++;
	if (load32(s->base + OFF_TOUCH)) {
		reads.hashes[reads.count++] = hash;
		if (reads.count == TOUCHED_MAX) {
			ephpm_kv_report();
		}
	}
}

enum ephpm_kv_result ephpm_kv_read(const zend_string *key, zend_string **value)
{
	uint32_t number = ephpm_worker.in_request ? ephpm_worker.work.job->store : 0;
	enum ephpm_kv_result result = EPHPM_KV_ASK;

	if (!number || number > ephpm_worker.store_count || ZSTR_LEN(key) > UINT16_MAX) {
		return EPHPM_KV_ASK;
	}
	const struct ephpm_store *s = &ephpm_worker.stores[number - 1];
	if (load64(s->base + OFF_MAGIC) != MAGIC || load32(s->base + OFF_MONITORED)) {
		return EPHPM_KV_ASK;
	}
	uint64_t hash =
		sip_hash(load64(s->base + OFF_K0), load64(s->base + OFF_K1), ZSTR_VAL(key), ZSTR_LEN(key));
	for (int i = 0; i < TRIES; i++) {
		if (try_read(s, key, (uint32_t)hash, &result, value)) {
			break;
		}
	}
	if (result == EPHPM_KV_FOUND || result == EPHPM_KV_ABSENT) {
		note(s, hash, result == EPHPM_KV_FOUND);
	}
	return result;
}

void ephpm_kv_report(void)
{
	if (reads.hits || reads.misses) {
		ephpm_record_send(EPHPM_REC_READS, &reads,
			offsetof(__typeof__(reads), hashes) + reads.count * sizeof(reads.hashes[0]));
		reads.hits = reads.misses = 0;
		reads.count = 0;
	}
}
