package main

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"ephpm/server"
)

// settings are the keys of a Config by name, such as "server.listen", each with
// the place that it sets.
type settings struct {
	names  []string                 // of the keys, in the order of the fields
	all    []string                 // of keys and tables
	place  map[string]reflect.Value // of the keys
	tables map[string][]string      // what is in each table, without the table's name
}

// settingsOf finds the keys by the toml tags.
func settingsOf(c *server.Config) settings {
	s := newSettings()
	s.walk("", reflect.ValueOf(c).Elem())
	return s
}

func newSettings() settings {
	return settings{place: map[string]reflect.Value{}, tables: map[string][]string{}}
}

func (s *settings) walk(table string, v reflect.Value) {
	for f, field := range v.Fields() {
		tag := f.Tag.Get("toml")
		if tag == "" || tag == "-" {
			continue
		}
		s.tables[table] = append(s.tables[table], tag)
		name := join(table, tag)
		s.all = append(s.all, name)
		if isTable(field.Type()) {
			s.walk(name, field)
			continue
		}
		s.names = append(s.names, name)
		s.place[name] = field
	}
}

// isTable reports whether a type is a table of keys rather than a value.
func isTable(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[unmarshaler]())
}

// join puts a key's name behind its table's; the root's is empty.
func join(table, key string) string {
	if table == "" {
		return key
	}
	return table + "." + key
}

// unknown says that a key does not exist, and what was meant.
func (s settings) unknown(table, key string) error {
	if advice, ok := plannedKey(join(table, key)); ok {
		return fmt.Errorf("not available in this version; %s", advice)
	}
	if near := nearest(key, s.tables[table]); near != "" {
		return fmt.Errorf("unknown key; did you mean %s?", near)
	}
	// The right name in the wrong table is the other common mistake.
	for _, name := range s.all {
		if strings.HasSuffix(name, "."+key) {
			return fmt.Errorf("unknown key; did you mean %s?", name)
		}
	}
	return errors.New("unknown key; ephpm.toml.example lists them all")
}

// An unmarshaler takes a value as a TOML file has it.
type unmarshaler interface{ UnmarshalTOML(v any) error }

func asUnmarshaler(place reflect.Value) (unmarshaler, bool) {
	u, ok := place.Addr().Interface().(unmarshaler)
	return u, ok
}

// set stores a value as a TOML file or JSON has it: string, int64, float64,
// bool, []any and others. An error leaves the place as it was.
func set(place reflect.Value, v any) error {
	if u, ok := asUnmarshaler(place); ok {
		err := u.UnmarshalTOML(v)
		_, isText := v.(string)
		_, isTable := v.(map[string]any)
		if err != nil && !isText && (!isTable || place.Kind() != reflect.Map) {
			return fmt.Errorf("%w; got %s", err, describe(v))
		}
		return err
	}
	want := ""
	switch place.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(place.Type().Elem())
		err := set(fresh.Elem(), v)
		if err == nil {
			place.Set(fresh)
		}
		return err
	case reflect.Struct:
		if table, ok := v.(map[string]any); ok {
			return setTable(place, table)
		}
		want = "a table"
	case reflect.String:
		if s, ok := v.(string); ok {
			place.SetString(s)
			return nil
		}
		want = "a string"
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			place.SetBool(b)
			return nil
		}
		want = "true or false"
	case reflect.Int:
		if n, ok := v.(int64); ok && !place.OverflowInt(n) {
			place.SetInt(n)
			return nil
		}
		want = "an integer"
	case reflect.Slice:
		if list, ok := v.([]any); ok {
			return setList(place, list)
		}
		want = "a list"
	default:
		panic("no way to set a " + place.Type().String())
	}
	return fmt.Errorf("want %s; got %s", want, describe(v))
}

func setList(place reflect.Value, list []any) error {
	fresh := reflect.MakeSlice(place.Type(), len(list), len(list))
	for i, v := range list {
		if err := set(fresh.Index(i), v); err != nil {
			return fmt.Errorf("entry %d: %w", i+1, err)
		}
	}
	place.Set(fresh)
	return nil
}

// setTable sets a table that is a value in a list.
func setTable(place reflect.Value, table map[string]any) error {
	s := newSettings()
	s.walk("", place)
	var fill func(table string, values map[string]any) error
	fill = func(table string, values map[string]any) error {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			name := join(table, key)
			below, isMap := values[key].(map[string]any)
			if _, ok := s.tables[name]; ok && isMap {
				if err := fill(name, below); err != nil {
					return err
				}
				continue
			}
			field, ok := s.place[name]
			if !ok {
				return fmt.Errorf("%s: %w", name, s.unknown(table, key))
			}
			if err := set(field, values[key]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	}
	return fill("", table)
}

// describe names a value as the one who wrote it would.
func describe(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("the string %q", v)
	case int64:
		return fmt.Sprintf("the integer %d", v)
	case float64:
		return fmt.Sprintf("the fraction %v", v)
	case bool:
		return fmt.Sprintf("the boolean %v", v)
	case []any:
		return "a list"
	case map[string]any, []map[string]any:
		return "a table"
	case nil:
		return "null"
	}
	return "a date or a time"
}
