package server

import (
	"crypto/tls"

	"github.com/prometheus/client_golang/prometheus"
)

// certMetrics reads the certificates when it is asked for. Its series follow from
// the configuration.
type certMetrics struct{ certs *certificates }

var (
	certExpiryDesc = prometheus.NewDesc("ephpm_tls_certificate_expiry_timestamp_seconds",
		"When the certificate expires, in Unix time; 0 while it is still to be obtained.", []string{"name"}, nil)
	certFailuresDesc = prometheus.NewDesc("ephpm_tls_certificate_failures_total",
		"Changed certificate files that could not be used.", nil, nil)
)

// Describe implements prometheus.Collector.
func (m certMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- certExpiryDesc
	out <- certFailuresDesc
}

// Collect implements prometheus.Collector.
func (m certMetrics) Collect(out chan<- prometheus.Metric) {
	expiry := map[string]float64{} // of one name the first that expires
	for _, cert := range m.certs.loaded() {
		name, at := certName(cert), float64(cert.Leaf.NotAfter.Unix())
		if before, ok := expiry[name]; !ok || at < before {
			expiry[name] = at
		}
	}
	if a := m.certs.acme; a != nil {
		for _, name := range a.names() {
			expiry[name] = a.expiry(name)
		}
	}
	for name, at := range expiry {
		out <- prometheus.MustNewConstMetric(certExpiryDesc, prometheus.GaugeValue, at, name)
	}
	out <- prometheus.MustNewConstMetric(certFailuresDesc, prometheus.CounterValue, float64(m.certs.failures.Load()))
}

// certName is the first host name of a certificate, else its subject's.
func certName(cert *tls.Certificate) string {
	if names := cert.Leaf.DNSNames; len(names) > 0 {
		return names[0]
	}
	return cert.Leaf.Subject.CommonName
}
