package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// envPrefix begins the name of every variable of ours. What follows is a key in
// capitals with "__" between the levels: EPHPM_SERVER__LISTEN.
const envPrefix = "EPHPM_"

// envName returns the variable that sets a key.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
}

// readEnvironment applies the variables to the settings. It tells set of each
// that was used, returns a mistake for each that cannot be one of ours, and a
// note for each that may well be somebody else's: Kubernetes, for one, sets
// EPHPM_PORT and others in every pod beside a service named ephpm.
func readEnvironment(environ []string, s settings, used func(key, name string)) (notes []string, mistakes []error) {
	ours := slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return !strings.HasPrefix(v, envPrefix) })
	slices.Sort(ours)
	for _, variable := range ours {
		name, text, _ := strings.Cut(variable, "=")
		key := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "__", "."))
		place, ok := s.place[key]
		if !ok {
			if meant := singleUnderscores(name, s.names); meant != "" {
				mistakes = append(mistakes, fmt.Errorf("%s: unknown key; did you mean %s? Levels are parted by two underscores", name, meant))
			} else if strings.Contains(key, ".") {
				mistakes = append(mistakes, fmt.Errorf("%s: %w", name, unknownVariable(key, s)))
			} else {
				notes = append(notes, name+": not a key of ephpm; ignored")
			}
			continue
		}
		if err := setText(place, text); err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s: %w", name, err))
			continue
		}
		used(key, name)
	}
	return notes, mistakes
}

// singleUnderscores returns the variable whose name differs only in the number
// of underscores.
func singleUnderscores(name string, keys []string) string {
	bare := strings.NewReplacer("_", "", ".", "")
	for _, key := range keys {
		if strings.EqualFold(bare.Replace(envName(key)), bare.Replace(name)) {
			return envName(key)
		}
	}
	return ""
}

func unknownVariable(key string, s settings) error {
	if advice, ok := plannedKey(key); ok {
		return fmt.Errorf("not available in this version; %s", advice)
	}
	if near := nearest(key, s.names); near != "" {
		return fmt.Errorf("unknown key; did you mean %s?", envName(near))
	}
	return errors.New("unknown key; ephpm.toml.example lists them all")
}

// setText stores a value that is text: a list or a table is JSON, and only the type of the
// place tells a number from a string.
func setText(place reflect.Value, text string) error {
	_, own := asUnmarshaler(place)
	switch kind := place.Kind(); {
	case kind == reflect.Slice && own:
		if list, err := parseList(text); err == nil {
			return set(place, list)
		}
	case kind == reflect.Slice:
		list, err := parseList(text)
		if err != nil {
			return err
		}
		return set(place, list)
	case kind == reflect.Map:
		var table map[string]any
		if err := json.Unmarshal([]byte(text), &table); err != nil || table == nil {
			return fmt.Errorf(`want a JSON object such as {"APP_ENV": "prod"}; got %q`, text)
		}
		return set(place, table)
	case kind == reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("want true or false; got %q", text)
		}
		return set(place, b)
	case own || kind == reflect.Int:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return set(place, n)
		}
	}
	return set(place, text)
}

// parseList reads a JSON array into what a TOML file would have given.
func parseList(text string) (any, error) {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var list []any
	if err := dec.Decode(&list); err != nil || list == nil {
		return nil, fmt.Errorf(`want a JSON array such as ["a", "b"]; got %q`, text)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%q has something behind the JSON array", text)
	}
	return numbers(list), nil
}

// numbers turns JSON numbers into int64 or float64, in lists and tables as well.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // out of range is infinite, and refused as a fraction
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = numbers(v[key])
		}
	}
	return v
}
