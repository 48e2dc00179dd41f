package registry

import (
	"strings"
	"testing"
)

func TestIDSurvivesItsText(t *testing.T) {
	id, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	text := id.String()
	if len(text) != 32 || text != strings.ToLower(text) {
		t.Errorf("String() = %q, want 32 lower-case digits", text)
	}
	if got, ok := ParseID(text); !ok || got != id {
		t.Errorf("ParseID(%q) = %v, %v, want the same ID", text, got, ok)
	}
}

func TestIDsDiffer(t *testing.T) {
	seen := map[ID]bool{}
	for range 1000 {
		id, err := NewID()
		if err != nil {
			t.Fatal(err)
		}
		if seen[id] {
			t.Fatalf("NewID returned %v twice", id)
		}
		seen[id] = true
	}
}

func TestParseIDTakesOnlyItsOwnForm(t *testing.T) {
	const good = "00112233445566778899aabbccddeeff"
	for _, text := range []string{
		"", "lobby", good[1:], good + "0", strings.ToUpper(good), "g" + good[1:],
		" " + good[1:], "\x00" + good[1:], "é" + good[2:],
	} {
		if id, ok := ParseID(text); ok || id != (ID{}) {
			t.Errorf("ParseID(%q) = %v, %v, want the zero ID and false", text, id, ok)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("00112233445566778899aabbccddeeff")
	f.Add("00112233445566778899AABBCCDDEEFF")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if id, ok := ParseID(text); ok && id.String() != text {
			t.Errorf("ParseID(%q) succeeded, but String() = %q", text, id)
		}
	})
}
