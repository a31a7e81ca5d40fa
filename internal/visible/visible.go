// Package visible makes text that a terminal shows, and does not act on.
package visible

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Name returns a name as it is, or quoted as in Go if it has anything that a terminal would act on, that is invisible, or that
// makes other text look different.
func Name(name string) string {
	quoted := !utf8.ValidString(name) || name == "" || strings.TrimSpace(name) != name
	for _, r := range name {
		quoted = quoted || !strconv.IsPrint(r) || r == '"'
	}
	if quoted {
		return strconv.Quote(name)
	}
	return name
}

// Bytes returns the bytes of a name that JSON cannot have as a text; nil: it can.
func Bytes(name string) []byte {
	if utf8.ValidString(name) {
		return nil
	}
	return []byte(name)
}

// JSON returns the same JSON with escapes for what encoding/json leaves as it is and a terminal acts on or hides: DEL, the
// C1 controls, and characters without a shape.
func JSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, hidden) {
		return text
	}
	var out []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case !hidden(r):
			out = append(out, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	return out
}

func hidden(r rune) bool { return r != '\n' && !strconv.IsPrint(r) }
