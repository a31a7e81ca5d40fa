package main

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

// printable returns a name as it may be written to a terminal: as it is, or quoted as in Go, if it has anything that a
// terminal would act on or that is invisible.
func printable(name string) string {
	if name == "" || !utf8.ValidString(name) {
		return strconv.Quote(name)
	}
	for i, r := range name {
		if !strconv.IsPrint(r) || r == '"' || (i == 0 && unicode.IsSpace(r)) {
			return strconv.Quote(name)
		}
	}
	if last, _ := utf8.DecodeLastRuneInString(name); unicode.IsSpace(last) {
		return strconv.Quote(name)
	}
	return name
}
