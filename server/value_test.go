package server

import (
	"maps"
	"math"
	"strings"
	"testing"
	"time"
)

func TestSizeReads(t *testing.T) {
	for _, test := range []struct {
		in   any
		want Size
	}{
		{int64(0), 0},
		{int64(65536), 65536},
		{"65536", 65536},
		{"12B", 12},
		{"64K", 64 << 10},
		{"64KB", 64 << 10},
		{"64kb", 64 << 10},
		{"64 MB", 64 << 20},
		{"8MiB", 8 << 20},
		{"2G", 2 << 30},
		{"1TiB", 1 << 40},
		{"0", 0},
	} {
		var got Size
		if err := got.UnmarshalTOML(test.in); err != nil || got != test.want {
			t.Errorf("size of %v = %d, %v, want %d", test.in, got, err, test.want)
		}
	}
}

func TestSizeRefuses(t *testing.T) {
	for _, in := range []any{
		"", "MB", "-1", "1.5GB", "64MBs", "5IB", "1e3", "64  MB", " 64", "9223372036854775808", "9999999T",
		1.5, true, time.Now(), []any{int64(1)}, map[string]any{}, nil,
	} {
		got := Size(7)
		if err := got.UnmarshalTOML(in); err == nil || got != 7 {
			t.Errorf("size of %v = %d, %v, want an error and the old value", in, got, err)
		}
	}
}

func TestSizePrintsItsLargestWholeUnit(t *testing.T) {
	for in, want := range map[Size]string{0: "0B", 1: "1B", 1500: "1500B", 64 << 10: "64KiB", 8 << 20: "8MiB", 1 << 50: "1024TiB", -1: "-1B"} {
		if got := in.String(); got != want {
			t.Errorf("Size(%d).String() = %q, want %q", int64(in), got, want)
		}
	}
}

func TestDurationReads(t *testing.T) {
	for _, test := range []struct {
		in              any
		seconds, millis time.Duration
	}{
		{int64(0), 0, 0},
		{int64(30), 30 * time.Second, 30 * time.Millisecond},
		{"1500ms", 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"2m", 2 * time.Minute, 2 * time.Minute},
	} {
		var s Duration
		if err := s.UnmarshalTOML(test.in); err != nil || time.Duration(s) != test.seconds {
			t.Errorf("Duration of %v = %v, %v, want %v", test.in, s, err, test.seconds)
		}
		var m Millis
		if err := m.UnmarshalTOML(test.in); err != nil || time.Duration(m) != test.millis {
			t.Errorf("Millis of %v = %v, %v, want %v", test.in, m, err, test.millis)
		}
	}
}

func TestDurationRefuses(t *testing.T) {
	for _, in := range []any{"", "30", "soon", "2 s", int64(1) << 62, int64(-1) << 62, 1.5, false, []any{}, nil} {
		d := Duration(7)
		if err := d.UnmarshalTOML(in); err == nil || d != 7 {
			t.Errorf("Duration of %v = %v, %v, want an error and the old value", in, d, err)
		}
	}
}

func TestWorkersIsANumberOrAuto(t *testing.T) {
	for in, want := range map[any]Workers{int64(4): 4, int64(0): 0, "auto": 0} {
		got := Workers(7)
		if err := got.UnmarshalTOML(in); err != nil || got != want {
			t.Errorf("Workers of %v = %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []any{"4", "many", 1.5, true} {
		got := Workers(7)
		if err := got.UnmarshalTOML(in); err == nil || !strings.Contains(err.Error(), "auto") || got != 7 {
			t.Errorf("Workers of %v = %d, %v, want an error that names auto", in, got, err)
		}
	}
}

func TestRevalidateIsATimeOrNever(t *testing.T) {
	for in, want := range map[any]Revalidate{int64(4): 4e9, int64(0): 0, "1m": 60e9, "never": Never} {
		got := Revalidate(7)
		if err := got.UnmarshalTOML(in); err != nil || got != want {
			t.Errorf("Revalidate of %v = %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []any{"4", "always", 1.5, true, []any{}, map[string]any{}} {
		got := Revalidate(7)
		if err := got.UnmarshalTOML(in); err == nil || !strings.Contains(err.Error(), "never") || got != 7 {
			t.Errorf("Revalidate of %v = %d, %v, want an error that names never", in, got, err)
		}
	}
	if got := Never.String() + " " + Revalidate(2e9).String(); got != "never 2s" {
		t.Errorf("printed as %q", got)
	}
}

func TestEnvIsATableOfStrings(t *testing.T) {
	got := Env{"OLD": "1"}
	if err := got.UnmarshalTOML(map[string]any{"A": "1", "B": ""}); err != nil || !maps.Equal(got, Env{"A": "1", "B": ""}) {
		t.Errorf("Env = %v, %v", got, err)
	}
	for _, in := range []any{"A=1", []any{}, nil, map[string]any{"A": int64(1)}, map[string]any{"A": map[string]any{}}} {
		if err := new(Env).UnmarshalTOML(in); err == nil {
			t.Errorf("Env of %v was accepted", in)
		}
	}
}

func TestSendfileRootIsAPairOfStrings(t *testing.T) {
	var got SendfileRoot
	if err := got.UnmarshalTOML([]any{"/p/", "/srv"}); err != nil || got != (SendfileRoot{"/p/", "/srv"}) {
		t.Errorf("SendfileRoot = %v, %v", got, err)
	}
	if err := got.UnmarshalTOML("/srv"); err == nil || !strings.Contains(err.Error(), "/protected/") {
		t.Errorf("SendfileRoot of a string: %v, want an example", err)
	}
}

func TestINIIsAPairOfStrings(t *testing.T) {
	var got INI
	if err := got.UnmarshalTOML([]any{"display_errors", "Off"}); err != nil || got != (INI{"display_errors", "Off"}) {
		t.Errorf("INI = %v, %v", got, err)
	}
	for _, in := range []any{"display_errors=Off", []any{}, []any{"a"}, []any{"a", "b", "c"}, []any{"a", int64(1)}, []any{false, "b"}} {
		if err := new(INI).UnmarshalTOML(in); err == nil {
			t.Errorf("INI of %v was accepted", in)
		}
	}
}

func FuzzSize(f *testing.F) {
	for _, seed := range []string{"", "64MB", "8MiB", "9223372036854775807", "9999999T", "1.5GB", "5 b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s, again Size
		if s.UnmarshalTOML(text) != nil {
			return
		}
		if s < 0 {
			t.Fatalf("size of %q = %d, below zero", text, s)
		}
		if err := again.UnmarshalTOML(s.String()); err != nil || again != s {
			t.Errorf("size of %q = %v, which reads as %v, %v", text, s, again, err)
		}
	})
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"", "2s", "1500ms", "-1h", "1.5s", "9999999h", "µs"} {
		f.Add(seed, int64(0))
	}
	f.Add("", int64(-1)<<63)
	f.Fuzz(func(t *testing.T, text string, n int64) {
		var d, again Duration
		if d.UnmarshalTOML(text) == nil {
			if err := again.UnmarshalTOML(d.String()); err != nil || again != d {
				t.Errorf("duration of %q = %v, which reads as %v, %v", text, d, again, err)
			}
		}
		if d.UnmarshalTOML(n) == nil && (d < 0) != (n < 0) {
			t.Errorf("%d seconds = %v: overflow", n, d)
		}
	})
}

func TestRateIsANumber(t *testing.T) {
	for in, want := range map[any]Rate{int64(4): 4, 0.5: 0.5, int64(0): 0} {
		got := Rate(7)
		if err := got.UnmarshalTOML(in); err != nil || got != want {
			t.Errorf("Rate of %v = %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []any{"4", true, math.NaN(), math.Inf(1)} {
		got := Rate(7)
		if err := got.UnmarshalTOML(in); err == nil || got != 7 {
			t.Errorf("Rate of %v = %v, %v, want an error", in, got, err)
		}
	}
}
