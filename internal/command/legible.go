package command

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// longest is how much of a text goes into errors and logs: more than the longest that Redis has, and
// not what a proxy may send.
const longest = 512

// LegibleText makes a text that comes from outside fit for errors and logs: not endless, on one line, printable.
func LegibleText(text string) string {
	cut := ""
	if len(text) > longest {
		end := longest
		for end > longest-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		cut = fmt.Sprintf("… (%d bytes)", len(text))
		text = text[:end]
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		text = strconv.Quote(text)
	}
	return text + cut
}

// Legible makes the text of err fit for errors and logs. What err is stays visible to errors.Is and errors.As.
func Legible(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if text == "" {
		return &retold{"an error without a text", err}
	}
	if plain := LegibleText(text); plain != text {
		return &retold{plain, err}
	}
	return err
}

// retold is an error with another text.
type retold struct {
	text string
	err  error
}

func (r *retold) Error() string { return r.text }
func (r *retold) Unwrap() error { return r.err }
