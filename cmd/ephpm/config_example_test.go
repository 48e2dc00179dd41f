package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"ephpm/server"
)

// The example is what every key's documentation hangs on: it must be complete,
// and its values must be the defaults.
func TestExampleIsTheDefaults(t *testing.T) {
	const name = "../../ephpm.toml.example"
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	l := &loader{config: scrambled(), origin: map[string]string{}}
	l.settings = settingsOf(&l.config)
	root, err := parse(string(source))
	if err != nil {
		t.Fatal(err)
	}
	var problems []problem
	l.apply("", l.settings, root, name, &problems)
	for _, p := range problems {
		t.Errorf("%s:%d: %s: %v", name, p.line, p.key, p.err)
	}
	defaults := server.DefaultConfig()
	want := settingsOf(&defaults)
	lines := strings.Split(string(source), "\n")
	for _, key := range want.names {
		if isTables(want.place[key]) {
			continue // none by default; see TestExampleHasEveryKeyOfASite
		}
		origin := l.origin[key]
		if origin == "" {
			t.Errorf("%s is not in the example", key)
			continue
		}
		got, def := l.settings.place[key], want.place[key]
		if fmt.Sprint(got) != fmt.Sprint(def) { // an empty list is as good as none
			t.Errorf("%s is %v in the example, %v by default", key, got, def)
		}
		var line int
		if _, err := fmt.Sscanf(strings.TrimPrefix(origin, name), ":%d", &line); err != nil {
			t.Fatal(err)
		}
		if above := lines[line-2]; !strings.HasPrefix(above, "# ") {
			t.Errorf("%s has no word of explanation above it in the example", key)
		}
	}
}

// The tables of sites are comments in the example, "#key = value" without a space.
func TestExampleHasEveryKeyOfASite(t *testing.T) {
	source, err := os.ReadFile("../../ephpm.toml.example")
	if err != nil {
		t.Fatal(err)
	}
	active := regexp.MustCompile(`(?m)^#(\[|[a-z_"]+ = )`).ReplaceAllString(string(source), "$1")
	l := &loader{config: server.DefaultConfig(), origin: map[string]string{}}
	l.settings = settingsOf(&l.config)
	root, err := parse(active)
	if err != nil {
		t.Fatal(err)
	}
	var problems []problem
	l.apply("", l.settings, root, "example", &problems)
	for _, p := range problems {
		t.Errorf("example:%d: %s: %v", p.line, p.key, p.err)
	}
	if len(l.config.Sites) != 1 {
		t.Fatalf("the example has %d sites, want 1", len(l.config.Sites))
	}
	lines := strings.Split(active, "\n")
	keys := newSettings()
	keys.walk("site[1]", reflect.ValueOf(&l.config.Sites[0]).Elem())
	for _, key := range keys.names {
		var line int
		if _, err := fmt.Sscanf(strings.TrimPrefix(l.origin[key], "example"), ":%d", &line); err != nil {
			t.Errorf("%s is not in the example", key)
		} else if above := lines[line-2]; !strings.HasPrefix(above, "# ") && !isTables(keys.place[key]) {
			t.Errorf("%s has no word of explanation above it in the example", key)
		}
	}
}

// scrambled returns a configuration without a single default, so that only what
// a file sets can be equal to one.
func scrambled() server.Config {
	var c server.Config
	for _, place := range settingsOf(&c).place {
		switch place.Kind() {
		case reflect.String:
			place.SetString("scrambled")
		case reflect.Float64:
			place.SetFloat(-1)
		case reflect.Int, reflect.Int64:
			place.SetInt(-1)
		case reflect.Slice:
			place.Set(reflect.MakeSlice(place.Type(), 1, 1))
		case reflect.Bool: // tested by hand: enabled is true once and false once
		}
	}
	return c
}

func TestExamplesLoad(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/ephpm.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("examples: %q, %v", files, err)
	}
	for _, file := range files {
		if _, notes, err := load(request{file: file}); err != nil || len(notes) > 0 {
			t.Errorf("%s: %v, notes %q", file, err, notes)
		}
	}
}
