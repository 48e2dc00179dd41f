package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

// An entry is one key of a TOML file with the line that it stands on. A table
// has entries, a list of tables a list, anything else a value.
type entry struct {
	line    int
	value   any
	entries map[string]*entry
	list    []*entry
}

// plain returns a table's values without their lines.
func (e *entry) plain() any {
	if e.list != nil {
		values := make([]any, len(e.list))
		for i, below := range e.list {
			values[i] = below.plain()
		}
		return values
	}
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
			return nil, fmt.Errorf("%d: %s", lineAt(source, at.Position.Start), explain(at.Message))
		}
		return nil, fmt.Errorf("1: %w", err)
	}
	t := table(md, source, root)
	for key, e := range t.entries {
		if len(e.list) > 0 {
			locate(source, key, e.list)
		}
	}
	return t, nil
}

// explain says in the place of the library, or adds to its words, what is most
// likely meant.
func explain(message string) string {
	switch message {
	case "strings cannot contain newlines", `unexpected EOF; expected '"'`, `unexpected EOF; expected "'"`:
		return "the text does not end on its line; is the quote at its end missing?"
	case `unexpected EOF; expected '"""'`, `unexpected EOF; expected "'''"`:
		return "the text that begins here has no end; are the three quotes at its end missing?"
	}
	if strings.HasPrefix(message, "expected value but found") {
		return message + "; a text needs quotes"
	}
	return message
}

// locate puts the lines right of a list of tables: the library knows only those
// of its last. So each is made the last, by leaving out the rest of the source.
func locate(source, key string, list []*entry) {
	header := regexp.MustCompile(`(?m)^[ \t]*\[\[[ \t]*` + regexp.QuoteMeta(key) + `[ \t]*\]\]`)
	at := header.FindAllStringIndex(source, -1)
	if len(at) != len(list) {
		return // one is inside of a text
	}
	for i := range len(list) - 1 {
		part := source[:at[i+1][0]]
		var root map[string]toml.Primitive
		if md, err := toml.Decode(part, &root); err == nil {
			if e := table(md, part, root).entries[key]; e != nil && len(e.list) == i+1 {
				list[i] = e.list[i]
			}
		}
	}
	for i, e := range list {
		if e.line == 0 {
			e.line = lineAt(source, at[i][1])
		}
	}
}

// table turns what was decoded into entries.
func table(md toml.MetaData, source string, keys map[string]toml.Primitive) *entry {
	t := &entry{entries: make(map[string]*entry, len(keys))}
	for key, undecoded := range keys {
		e := &entry{}
		_ = md.PrimitiveDecode(undecoded, &e.value) // anything fits in any
		switch e.value.(type) {
		case map[string]any:
			var below map[string]toml.Primitive
			_ = md.PrimitiveDecode(undecoded, &below) // a table always fits
			e = table(md, source, below)
		case []map[string]any:
			var below []map[string]toml.Primitive
			_ = md.PrimitiveDecode(undecoded, &below) // tables always fit
			e.list = make([]*entry, len(below))
			for i := range below {
				e.list[i] = table(md, source, below[i])
			}
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
