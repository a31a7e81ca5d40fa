// Package visible makes text that a terminal shows, and does not act on.
package visible

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

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
