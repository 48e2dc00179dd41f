package server

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Size is a number of bytes. In a file it is an integer or a string such as
// "64MB"; K, KB and KiB all mean 1024 bytes, as in php.ini.
type Size int64

// sizeForm takes no fraction: "1.5GB" is refused rather than rounded.
var sizeForm = regexp.MustCompile(`^([0-9]+) ?(?:B|([KMGT])(?:I?B)?)?$`)

// UnmarshalTOML sets the size from an integer or a string.
func (s *Size) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case int64:
		*s = Size(v)
		return nil
	case string:
		n, err := parseSize(v)
		if err == nil {
			*s = n
		}
		return err
	}
	return errors.New(`want a size: bytes, or a string such as "64MB"`)
}

func parseSize(text string) (Size, error) {
	m := sizeForm.FindStringSubmatch(strings.ToUpper(text))
	if m == nil {
		return 0, fmt.Errorf(`%q is not a size such as 65536 or "64MB"`, text)
	}
	shift := 10 * strings.Index(" KMGT", m[2]) // 0 for no letter
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is too large a size", text)
	}
	return Size(n << shift), nil
}

// String returns the size in its largest whole unit, such as "8MiB".
func (s Size) String() string {
	n, unit := int64(s), 0
	for n != 0 && n%1024 == 0 && unit < 4 {
		n /= 1024
		unit++
	}
	return strconv.FormatInt(n, 10) + [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[unit]
}

// A Duration is a time that counts in seconds: in a file an integer is seconds,
// a string has its own unit, such as "1500ms" or "2m".
type Duration time.Duration

// UnmarshalTOML sets the duration from an integer or a string.
func (d *Duration) UnmarshalTOML(v any) error {
	n, err := duration(v, time.Second)
	if err == nil {
		*d = Duration(n)
	}
	return err
}

// String returns the duration as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// Millis is a Duration whose integer is milliseconds, for the keys that end in
// _ms.
type Millis time.Duration

// UnmarshalTOML sets the duration from an integer or a string.
func (m *Millis) UnmarshalTOML(v any) error {
	n, err := duration(v, time.Millisecond)
	if err == nil {
		*m = Millis(n)
	}
	return err
}

// String returns the duration as time.Duration does.
func (m Millis) String() string { return time.Duration(m).String() }

// duration reads an integer in the given unit or a string with its own.
func duration(v any, unit time.Duration) (time.Duration, error) {
	switch v := v.(type) {
	case int64:
		if limit := math.MaxInt64 / int64(unit); v > limit || v < -limit {
			return 0, fmt.Errorf("%d is too long a time", v)
		}
		return time.Duration(v) * unit, nil
	case string:
		d, err := time.ParseDuration(v)
		if err != nil {
			return 0, fmt.Errorf(`%q is not a time such as "2s" or "1500ms"`, v)
		}
		return d, nil
	}
	unitName := "seconds"
	if unit == time.Millisecond {
		unitName = "milliseconds"
	}
	return 0, fmt.Errorf(`want a time: %s, or a string such as "1500ms"`, unitName)
}

// Revalidate is a time in whole seconds, or Never. In a file it is an integer, a
// string with a unit, or "never".
type Revalidate time.Duration

// Never is longer than any server runs.
const Never Revalidate = math.MaxInt64

// UnmarshalTOML sets the time from an integer or a string.
func (r *Revalidate) UnmarshalTOML(v any) error {
	if v == "never" {
		*r = Never
		return nil
	}
	n, err := duration(v, time.Second)
	if err != nil {
		return fmt.Errorf(`%w, or "never"`, err)
	}
	*r = Revalidate(n)
	return nil
}

// String returns the time as time.Duration does, or "never".
func (r Revalidate) String() string {
	if r == Never {
		return "never"
	}
	return time.Duration(r).String()
}

// Workers is a number of workers. In a file it is an integer or "auto", which
// is 0: derived from the machine.
type Workers int

// UnmarshalTOML sets the number from an integer or "auto".
func (w *Workers) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case int64:
		*w = Workers(v)
		return nil
	case string:
		if v == "auto" {
			*w = 0
			return nil
		}
		return fmt.Errorf(`%q is not a number of workers; want an integer or "auto"`, v)
	}
	return errors.New(`want a number of workers or "auto"`)
}

// An INI is one php.ini directive. In a file it is a pair: ["name", "value"].
type INI struct{ Name, Value string }

// UnmarshalTOML sets the directive from a pair of strings.
func (i *INI) UnmarshalTOML(v any) error {
	name, value, err := pair(v, `["name", "value"]`)
	if err == nil {
		*i = INI{Name: name, Value: value}
	}
	return err
}

// A SendfileRoot is a directory and the URL path that stands for it in
// X-Accel-Redirect. In a file it is a pair: ["/protected/", "/srv/files"].
type SendfileRoot struct{ Prefix, Dir string }

// UnmarshalTOML sets the root from a pair of strings.
func (r *SendfileRoot) UnmarshalTOML(v any) error {
	prefix, dir, err := pair(v, `["/protected/", "/srv/files"]`)
	if err == nil {
		*r = SendfileRoot{Prefix: prefix, Dir: dir}
	}
	return err
}

// pair reads a list of two strings.
func pair(v any, example string) (first, second string, err error) {
	list, ok := v.([]any)
	if !ok || len(list) != 2 {
		return "", "", errors.New("want a pair " + example)
	}
	first, ok1 := list[0].(string)
	second, ok2 := list[1].(string)
	if !ok1 || !ok2 {
		return "", "", errors.New("want a pair of strings " + example)
	}
	return first, second, nil
}

// Env are environment variables by name. In a file it is a table of strings.
type Env map[string]string

// UnmarshalTOML sets the variables from a table.
func (e *Env) UnmarshalTOML(v any) error {
	table, ok := v.(map[string]any)
	if !ok {
		return errors.New(`want a table such as { APP_ENV = "prod" }`)
	}
	all := Env{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		value, ok := table[name].(string)
		if !ok {
			return fmt.Errorf("%s: want a string", name)
		}
		all[name] = value
	}
	*e = all
	return nil
}
