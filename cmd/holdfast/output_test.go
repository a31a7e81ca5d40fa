//go:build unix

package main

import "testing"

func TestPrintable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"stock:42": "stock:42", "größe 7": "größe 7", "": `""`, " x": `" x"`, "x ": `"x "`, `a"b`: `"a\"b"`,
		"\x1b[2J": `"\x1b[2J"`, "a\nb": `"a\nb"`, "\xff": `"\xff"`, "rtl\u202e": `"rtl\u202e"`, "nul\x00": `"nul\x00"`,
	} {
		if got := printable(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
