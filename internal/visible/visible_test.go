package visible

import (
	"encoding/json"
	"testing"
)

func TestJSON(t *testing.T) {
	for name, want := range map[string]string{
		"plain é 漢 😀":    "[\n \"plain é 漢 😀\"\n]",
		"\x7f\u009b31m":  "[\n \"\\u007f\\u009b31m\"\n]",
		"a\u202eb\ue000": "[\n \"a\\u202eb\\ue000\"\n]",
		"\U000e0001\x1b": "[\n \"\\udb40\\udc01\\u001b\"\n]",
	} {
		text, err := json.MarshalIndent([]string{name}, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		got := JSON(text)
		var back []string
		if err := json.Unmarshal(got, &back); err != nil || string(got) != want || back[0] != name {
			t.Errorf("%q: %s, %q, %v", name, got, back, err)
		}
	}
}

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"stock:42": "stock:42", "größe 7": "größe 7", "": `""`, " x": `" x"`, "x ": `"x "`, `a"b`: `"a\"b"`,
		"\x1b[2J": `"\x1b[2J"`, "a\nb": `"a\nb"`, "\xff": `"\xff"`, "rtl\u202e": `"rtl\u202e"`, "nul\x00": `"nul\x00"`,
	} {
		if got := Name(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
