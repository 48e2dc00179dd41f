package server

import (
	"github.com/prometheus/client_golang/prometheus"
)

// kvMetrics reads the state of the stores, all sites together, when it is asked
// for.
type kvMetrics struct {
	stores *stores
	redis  *redisServer // nil when there is none
}

var (
	kvKeysDesc      = kvDesc("keys", "Keys in the stores of all sites.")
	kvBytesDesc     = kvDesc("memory_bytes", "Memory that counts against memory_limit, of all sites.")
	kvLimitDesc     = kvDesc("memory_limit_bytes", "memory_limit of all sites together.")
	kvHitsDesc      = kvDesc("hits_total", "Reads that found their key.")
	kvMissesDesc    = kvDesc("misses_total", "Reads of keys that are not there.")
	kvEvictionsDesc = kvDesc("evictions_total", "Keys dropped to make room.")
	kvExpiredDesc   = kvDesc("expirations_total", "Keys dropped at the end of their TTL.")
	kvRefusedDesc   = kvDesc("refused_writes_total", "Writes that did not fit in memory_limit.")
	kvLocksDesc     = kvDesc("locks", "Locks that are held or waited for.")
	kvWaitersDesc   = kvDesc("waiters", "Calls that wait for a change of a key.")

	redisOpenDesc     = kvDesc("redis_connections", "Connections of clients of Redis.")
	redisAcceptedDesc = kvDesc("redis_connections_total", "Connections of clients of Redis that were accepted.")
	redisRefusedDesc  = kvDesc("redis_refused_total", "Connections of clients of Redis over max_connections.")
	redisMemoryDesc   = kvDesc("redis_clients_memory_bytes", "Memory that clients of Redis hold, of clients_memory_limit.")
	redisEvictedDesc  = kvDesc("redis_evicted_total", "Connections of clients of Redis cut because of clients_memory_limit.")
	redisCommandsDesc = kvDesc("redis_commands_total", "Commands of clients of Redis.")
)

func kvDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("ephpm_kv_"+name, help, nil, nil)
}

// Describe implements prometheus.Collector.
func (m kvMetrics) Describe(out chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(m, out)
}

// Collect implements prometheus.Collector.
func (m kvMetrics) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, n float64) {
		out <- prometheus.MustNewConstMetric(d, kind, n)
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	var keys, bytes, limit, hits, misses, evictions, expired, refused, locks, waiters float64
	for _, store := range m.stores.now() {
		s := store.Stats()
		keys, bytes, limit = keys+float64(s.Keys), bytes+float64(s.Bytes), limit+float64(s.Limit)
		hits, misses = hits+float64(s.Hits), misses+float64(s.Misses)
		evictions, expired, refused = evictions+float64(s.Evictions), expired+float64(s.Expired), refused+float64(s.Refused)
		locks, waiters = locks+float64(s.Locks), waiters+float64(s.Waiters)
	}
	send(kvKeysDesc, gauge, keys)
	send(kvBytesDesc, gauge, bytes)
	send(kvLimitDesc, gauge, limit)
	send(kvHitsDesc, counter, hits)
	send(kvMissesDesc, counter, misses)
	send(kvEvictionsDesc, counter, evictions)
	send(kvExpiredDesc, counter, expired)
	send(kvRefusedDesc, counter, refused)
	send(kvLocksDesc, gauge, locks)
	send(kvWaitersDesc, gauge, waiters)
	if m.redis == nil {
		return
	}
	r := m.redis.Stats()
	send(redisOpenDesc, gauge, float64(r.Open))
	send(redisAcceptedDesc, counter, float64(r.Connections))
	send(redisRefusedDesc, counter, float64(r.Refused))
	send(redisMemoryDesc, gauge, float64(r.Memory))
	send(redisEvictedDesc, counter, float64(r.Evicted))
	send(redisCommandsDesc, counter, float64(r.Commands))
}
