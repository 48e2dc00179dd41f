package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"ephpm/phpbridge"
)

// OPcache returns that of the pool that runs, and the totals of those
// before it.
func (p *ownPool) OPcache() phpbridge.OPcache {
	p.mu.Lock()
	sum, pool := p.pastOPcache, p.pool
	p.mu.Unlock()
	if pool != nil {
		sum.Add(pool.OPcache())
	}
	return sum
}

// opcache returns the sum of all pools.
func (p *pools) opcache() phpbridge.OPcache {
	all := p.all()
	p.mu.Lock()
	sum := p.pastOPcache
	p.mu.Unlock()
	each := make(chan phpbridge.OPcache, len(all))
	for _, w := range all {
		go func() { each <- w.OPcache() }() // ends in a second or two
	}
	for range all {
		sum.Add(<-each)
	}
	return sum
}

// opcacheMetrics asks for it when it is asked.
type opcacheMetrics struct{ read func() phpbridge.OPcache }

var (
	opcacheMemoryDesc   = opcacheDesc("memory_bytes", "Shared memory of OPcache: used, free, or wasted by scripts that have changed.", "state")
	opcacheStringsDesc  = opcacheDesc("interned_strings_bytes", "Of the used memory, that for strings which scripts share.", "state")
	opcacheScriptsDesc  = opcacheDesc("scripts", "Compiled scripts.")
	opcacheKeysDesc     = opcacheDesc("keys", "Names by which they are found.")
	opcacheMaxKeysDesc  = opcacheDesc("max_keys", "How many names there may be.")
	opcacheHitsDesc     = opcacheDesc("hits_total", "Scripts that were there when they were needed.")
	opcacheMissesDesc   = opcacheDesc("misses_total", "Scripts that had to be compiled.")
	opcacheRestartsDesc = opcacheDesc("restarts_total", "Times that OPcache forgot everything.", "reason")
	opcacheJITSizeDesc  = opcacheDesc("jit_buffer_size_bytes", "Memory for machine code; 0 when there is none.")
	opcacheJITFreeDesc  = opcacheDesc("jit_buffer_free_bytes", "What is left of it.")
)

func opcacheDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ephpm_opcache_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector. It asks nobody.
func (m opcacheMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		opcacheMemoryDesc, opcacheStringsDesc, opcacheScriptsDesc, opcacheKeysDesc, opcacheMaxKeysDesc,
		opcacheHitsDesc, opcacheMissesDesc, opcacheRestartsDesc, opcacheJITSizeDesc, opcacheJITFreeDesc,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m opcacheMetrics) Collect(out chan<- prometheus.Metric) {
	o := m.read()
	gauge := func(d *prometheus.Desc, n int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge(opcacheMemoryDesc, o.Used, "used")
	gauge(opcacheMemoryDesc, o.Free, "free")
	gauge(opcacheMemoryDesc, o.Wasted, "wasted")
	gauge(opcacheStringsDesc, o.StringsUsed, "used")
	gauge(opcacheStringsDesc, o.StringsFree, "free")
	gauge(opcacheScriptsDesc, o.Scripts)
	gauge(opcacheKeysDesc, o.Keys)
	gauge(opcacheMaxKeysDesc, o.MaxKeys)
	counter(opcacheHitsDesc, o.Hits)
	counter(opcacheMissesDesc, o.Misses)
	for _, reason := range phpbridge.OPcacheRestarts {
		counter(opcacheRestartsDesc, o.Restarts[reason], reason.String())
	}
	gauge(opcacheJITSizeDesc, o.JITSize)
	gauge(opcacheJITFreeDesc, o.JITFree)
}
