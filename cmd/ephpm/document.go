package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// An entry is one key of a TOML file with the line that it stands on. A table
// has entries, anything else a value.
type entry struct {
	line    int
	value   any
	entries map[string]*entry
}

// plain returns a table's values without their lines.
func (e *entry) plain() any {
	if e.entries == nil {
		return e.value
	}
	values := make(map[string]any, len(e.entries))
	for key, below := range e.entries {
		values[key] = below.plain()
	}
	return values
}

// parse reads TOML. An error says what is wrong and on which line, as
// "3: expected …".
func parse(source string) (*entry, error) {
	source = strings.TrimPrefix(source, "\ufeff")
	var root map[string]toml.Primitive
	md, err := toml.Decode(source, &root)
	if err != nil {
		var at toml.ParseError
		if errors.As(err, &at) {
			return nil, fmt.Errorf("%d: %s", lineAt(source, at.Position.Start), at.Message)
		}
		return nil, fmt.Errorf("1: %w", err)
	}
	return table(md, source, root), nil
}

// table turns what was decoded into entries.
func table(md toml.MetaData, source string, keys map[string]toml.Primitive) *entry {
	t := &entry{entries: make(map[string]*entry, len(keys))}
	for key, undecoded := range keys {
		e := &entry{}
		_ = md.PrimitiveDecode(undecoded, &e.value) // anything fits in any
		if _, isTable := e.value.(map[string]any); isTable {
			var below map[string]toml.Primitive
			_ = md.PrimitiveDecode(undecoded, &below) // a table always fits
			e = table(md, source, below)
		}
		if line := lineOf(md, source, undecoded); line > 0 {
			e.line = line
		}
		if t.line == 0 || e.line < t.line {
			t.line = e.line // of a table that has no header of its own
		}
		t.entries[key] = e
	}
	return t
}

// lineOf returns the line of a key, or 0 for a table that no header names. The
// library tells positions only in errors, so one is provoked.
func lineOf(md toml.MetaData, source string, undecoded toml.Primitive) int {
	var at toml.ParseError
	if !errors.As(md.PrimitiveDecode(undecoded, refuser{}), &at) || at.Position.Line == 0 {
		return 0
	}
	return lineAt(source, at.Position.Start)
}

// lineAt counts lines itself: the library's line of a value that spans several
// is the last of them.
func lineAt(source string, offset int) int {
	return 1 + strings.Count(source[:min(max(offset, 0), len(source))], "\n")
}

// A refuser fails to decode anything.
type refuser struct{}

func (refuser) UnmarshalTOML(any) error { return errors.New("refused") }
