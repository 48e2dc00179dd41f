package server

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestCertificateMetrics(t *testing.T) {
	pair := newKeyPair(t, t.TempDir(), "a.example")
	c, _ := newCerts(t, pair)
	a, err := newACME(TLSConfig{CacheDir: t.TempDir()}, []string{"c.example"}, 0, 443, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	c.acme = a
	r := prometheus.NewRegistry()
	r.MustRegister(certMetrics{c})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"ephpm_tls_certificate_expiry_timestamp_seconds a.example": float64(c.loaded()[0].Leaf.NotAfter.Unix()),
		"ephpm_tls_certificate_expiry_timestamp_seconds c.example": 0, // not obtained yet
		"ephpm_tls_certificate_failures_total":                     0,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
