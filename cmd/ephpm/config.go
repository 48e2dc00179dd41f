package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"ephpm/server"
)

// defaultFile is the configuration that is read when none is named.
const defaultFile = "ephpm.toml"

// A request says where a configuration comes from. Strings are empty when the
// flag was not given.
type request struct {
	file    string // -c
	listen  string // -l
	root    string // -d
	verbose bool   // -v
	environ []string

	alone    bool                 // no file is read
	defaults func(*server.Config) // changes the defaults; nil: none
}

// A loader puts a configuration together, weakest source first.
type loader struct {
	config   server.Config
	settings settings
	origin   map[string]string // where a key was set; a default is not listed
	notes    []string
	mistakes []error
}

// load returns the checked configuration, and notes for the log. The error is a
// join with one line for each mistake in all the sources.
func load(r request) (server.Config, []string, error) {
	l := &loader{config: server.DefaultConfig(), origin: map[string]string{}}
	l.settings = settingsOf(&l.config)
	if r.defaults != nil {
		r.defaults(&l.config)
	}

	file, err := findFile(r)
	if err != nil {
		return server.Config{}, nil, err
	}
	if file != "" {
		if err := l.readFile(file); err != nil {
			return server.Config{}, nil, err
		}
	}
	notes, mistakes := readEnvironment(r.environ, l.settings, l.from)
	l.notes = append(l.notes, notes...)
	l.mistakes = append(l.mistakes, mistakes...)
	l.readFlags(r)

	l.config.Derive(func(key string) bool { return l.origin[key] != "" })
	if len(l.mistakes) == 0 { // a wrong value would only be told twice
		l.validate()
	}
	if len(l.mistakes) > 0 {
		return server.Config{}, nil, errors.Join(l.mistakes...)
	}
	return l.config, append(l.notes, l.config.Warnings()...), nil
}

// from remembers where a key was set.
func (l *loader) from(key, origin string) { l.origin[key] = origin }

// findFile returns the file to read, or "" for none. Without one, somebody must
// have said what to serve: nobody wants a directory published by accident.
func findFile(r request) (string, error) {
	if r.file != "" || r.alone {
		return r.file, nil
	}
	_, err := os.Stat(defaultFile)
	switch {
	case err == nil:
		return defaultFile, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	case r.root != "" || slices.ContainsFunc(r.environ, namesRoot):
		return "", nil
	}
	return "", errors.New("there is no ephpm.toml in this directory; name a configuration with -c FILE, or a directory to serve with -d DIR")
}

func namesRoot(variable string) bool {
	return strings.HasPrefix(variable, envName("server.document_root")+"=")
}

// readFile applies a file. An error means that it could not be read at all.
func (l *loader) readFile(name string) error {
	source, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist; name a configuration with -c FILE, or leave -c out and name a directory to serve with -d DIR", name)
	}
	if err != nil {
		return err
	}
	if l.config.File, err = filepath.Abs(name); err != nil {
		return err
	}
	root, err := parse(string(source))
	if err != nil {
		return fmt.Errorf("%s:%w", name, err)
	}
	var problems []problem
	l.apply("", l.settings, root, name, &problems)
	slices.SortFunc(problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.key, b.key))
	})
	for _, p := range problems {
		l.mistakes = append(l.mistakes, fmt.Errorf("%s:%d: %s: %w", name, p.line, p.key, p.err))
	}
	l.resolve(filepath.Dir(name))
	return nil
}

// A problem is a mistake at a line of the file.
type problem struct {
	line int
	key  string
	err  error
}

// apply sets the entries of a table.
func (l *loader) apply(table string, s settings, t *entry, file string, problems *[]problem) {
	for key, e := range t.entries {
		name := join(table, key)
		place, isSetting := s.place[name]
		_, isTable := s.tables[name]
		var err error
		switch {
		case isTable && e.entries != nil:
			l.apply(name, s, e, file, problems)
			continue
		case isSetting && e.list != nil && isTables(place):
			l.applyList(name, place, e, file, problems)
			continue
		case isTable:
			err = fmt.Errorf("is a table; its keys go below a line [%s]", name)
		case isSetting && e.entries != nil && place.Kind() == reflect.Map:
			if err = set(place, e.plain()); err == nil {
				l.from(name, fmt.Sprintf("%s:%d", file, e.line))
			}
		case isSetting && e.entries != nil && isTables(place):
			err = fmt.Errorf("is a list of tables; each begins with a line [[%s]]", name)
		case isSetting && (e.entries != nil || e.list != nil):
			err = notTable(place)
		case isSetting:
			if err = set(place, e.value); err == nil {
				l.from(name, fmt.Sprintf("%s:%d", file, e.line))
			}
		default:
			err = s.unknown(table, key)
		}
		if err != nil {
			*problems = append(*problems, problem{line: e.line, key: name, err: err})
		}
	}
}

// isTables reports whether a key is a list of tables.
func isTables(place reflect.Value) bool {
	return place.Kind() == reflect.Slice && isTable(place.Type().Elem())
}

// applyList sets a list of tables. Keys in the nth are called "site[n].root".
func (l *loader) applyList(name string, place reflect.Value, e *entry, file string, problems *[]problem) {
	fresh := reflect.MakeSlice(place.Type(), len(e.list), len(e.list))
	for i, t := range e.list {
		table := fmt.Sprintf("%s[%d]", name, i+1)
		l.from(table, fmt.Sprintf("%s:%d", file, t.line))
		s := newSettings()
		s.walk(table, fresh.Index(i))
		l.apply(table, s, t, file, problems)
	}
	place.Set(fresh)
	l.from(name, fmt.Sprintf("%s:%d", file, e.list[0].line))
}

// notTable says what a key wants that was given as a table.
func notTable(place reflect.Value) error {
	switch {
	case place.Type() == reflect.TypeFor[[]server.INI]():
		return errors.New(`is a list of pairs, not a table; write it as [["memory_limit", "1G"], ["display_errors", "Off"]]`)
	case place.Kind() == reflect.Slice:
		return errors.New("is a list, not a table")
	}
	return errors.New("is a key, not a table")
}

// resolve lets the paths of a file start at the file's directory, so that the
// server serves the same from wherever it is started.
func (l *loader) resolve(dir string) {
	c := &l.config
	paths := []*string{
		&c.Server.DocumentRoot, &c.Server.PIDFile, &c.Server.SitesDir, &c.Server.SitesStateDir, &c.Server.TLS.Cert, &c.Server.TLS.Key, &c.Server.TLS.CertDir,
		&c.Server.TLS.CacheDir, &c.Server.TLS.ACMECA, &c.Server.HTTP3.KeyFile, &c.PHP.INIFile,
		&c.KV.Snapshot, &c.KV.Redis.Socket,
	}
	for i := range c.Auth {
		paths = append(paths, &c.Auth[i].File)
	}
	for i := range c.Sites {
		s := &c.Sites[i]
		for n := range s.Auth {
			paths = append(paths, &s.Auth[n].File)
		}
		paths = append(paths, &s.Root, &s.TLS.Cert, &s.TLS.Key)
		if access := &s.Logging.Access; *access != server.AccessStdout && *access != server.AccessOff {
			paths = append(paths, access)
		}
	}
	if c.Server.ControlSocket != server.ControlAuto {
		paths = append(paths, &c.Server.ControlSocket)
	}
	if c.Server.Logging.Access != server.AccessStdout {
		paths = append(paths, &c.Server.Logging.Access)
	}
	for _, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}

func (l *loader) readFlags(r request) {
	if r.listen != "" {
		l.config.Server.Listen = server.Addresses{r.listen}
		l.from("server.listen", "-l")
	}
	if r.root != "" {
		l.config.Server.DocumentRoot = r.root
		l.from("server.document_root", "-d")
	}
	if r.verbose {
		l.config.Server.Logging.Level = "debug"
		l.from("server.logging.level", "-v")
	}
}

// validate adds what Validate finds, with the place where the key was set.
func (l *loader) validate() {
	err := l.config.Validate()
	if err == nil {
		return
	}
	found := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		found = joined.Unwrap()
	}
	for _, err := range found {
		var k *server.KeyError
		if errors.As(err, &k) {
			if place := l.place(k.Key); place != "" {
				err = fmt.Errorf("%s: %w", place, err)
			}
		}
		l.mistakes = append(l.mistakes, err)
	}
}

// place tells where a key was set, or the nearest table of a list around it; else "".
func (l *loader) place(key string) string {
	for key != "" {
		if at := l.origin[key]; at != "" {
			return at
		}
		i := strings.LastIndexByte(key, '.')
		if i < 0 || !strings.Contains(key, "]") {
			break
		}
		key = key[:i]
	}
	return ""
}
