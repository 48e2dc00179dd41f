package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"ephpm/phpbridge"
)

// poolMetrics reads the pool's state when it is asked for.
type poolMetrics struct {
	stats   func() phpbridge.Stats
	shedder *shedder // nil when nothing is shed
}

var (
	workersDesc  = poolDesc("workers", "Workers of PHP by what they do.", "state")
	backlogDesc  = poolDesc("backlog", "Requests that wait for a worker.", "class")
	refusedDesc  = poolDesc("refused_total", "Requests refused because no worker came free.", "class")
	shedDesc     = poolDesc("shed_total", "Pages refused by overload_policy shed.")
	spawnsDesc   = poolDesc("worker_spawns_total", "Workers forked.")
	recyclesDesc = poolDesc("worker_recycles_total", "Workers replaced after worker_max_requests.")
	crashesDesc  = poolDesc("worker_crashes_total", "Workers that died or were killed.")
	timeoutsDesc = poolDesc("script_timeouts_total", "Scripts of pages and events killed at the time limit.")
)

func poolDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ephpm_php_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (m poolMetrics) Describe(out chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(m, out)
}

// Collect implements prometheus.Collector.
func (m poolMetrics) Collect(out chan<- prometheus.Metric) {
	s := m.stats()
	shed := m.shedder.addTo(&s)
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge(workersDesc, s.Busy, "busy")
	gauge(workersDesc, max(0, s.Workers-s.Busy), "idle")
	for _, class := range []phpbridge.Class{phpbridge.Page, phpbridge.Event} {
		gauge(backlogDesc, s.Waiting[class], class.String())
		counter(refusedDesc, s.Refused[class], class.String())
	}
	counter(shedDesc, shed)
	counter(spawnsDesc, s.Spawns)
	counter(recyclesDesc, s.Recycles)
	counter(crashesDesc, s.Crashes)
	counter(timeoutsDesc, s.Timeouts)
}
