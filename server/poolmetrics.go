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
	shedDesc     = poolDesc("shed_total", "Pages refused by overload_policy shed.", "engine", "reason")
	spawnsDesc   = poolDesc("worker_spawns_total", "Workers forked.")
	recyclesDesc = poolDesc("worker_recycles_total", "Workers replaced as planned.")
	crashesDesc  = poolDesc("worker_crashes_total", "Workers that died or were killed.")
	timeoutsDesc = poolDesc("script_timeouts_total", "Scripts of pages and events killed at the time limit.")

	// The names by which the public ePHPm has the same.
	fpmSizeDesc     = fpmDesc("size", "Workers of PHP.")
	fpmQueueDesc    = fpmDesc("queue_depth", "Requests that wait for a worker.")
	fpmFailuresDesc = fpmDesc("boot_failures_total", "Times that PHP did not start.")
	fpmCrashesDesc  = fpmDesc("contained_crashes_total", "Workers that died or were killed, each with no more than its request.")
	fpmPanicsDesc   = fpmDesc("panics_total", "Times that a worker wrote what no worker writes, and was killed.")
	fpmRecyclesDesc = fpmDesc("recycles_total", "Workers replaced as planned.", "reason")
)

// poolEngine is the only value of the label "engine".
const poolEngine = "pool"

func poolDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ephpm_php_"+name, help, labels, nil)
}

func fpmDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ephpm_fpm_pool_"+name, help, labels, nil)
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
	for reason, n := range shed {
		counter(shedDesc, n, poolEngine, shedReasonNames[reason])
	}
	counter(spawnsDesc, s.Spawns)
	counter(recyclesDesc, s.Recycles)
	counter(crashesDesc, s.Crashes)
	counter(timeoutsDesc, s.Timeouts)

	gauge(fpmSizeDesc, s.Workers)
	gauge(fpmQueueDesc, s.Waiting[phpbridge.Page]+s.Waiting[phpbridge.Event])
	counter(fpmFailuresDesc, s.Failures)
	counter(fpmCrashesDesc, s.Crashes)
	counter(fpmPanicsDesc, s.Broken)
	for _, reason := range phpbridge.RecycleReasons {
		counter(fpmRecyclesDesc, s.Reasons[reason], reason.String())
	}
}
