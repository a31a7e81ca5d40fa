package stage

import (
	"bufio"
	"strings"
	"testing"
)

// What a client sends is passed on as it is, whatever bytes it has.
func TestLine_PassesRequestsOn(t *testing.T) {
	for _, words := range [][]string{{"ping"}, {"set", "k", ""}, {"set", "k", "a\r\n$3\r\n\x00é"}, {}} {
		in := bufio.NewReader(strings.NewReader(string(request(words)) + "*1\r\n"))
		got, err := readRequest(in)
		if err != nil || strings.Join(got, "|") != strings.Join(words, "|") {
			t.Errorf("%q: %q, %v", words, got, err)
		}
	}
	for _, bad := range []string{"", "*1", "*1\r\n", "*1\r\n$3\r\nab", "PING\r\n", "*-1\r\n", "*1\r\n:3\r\n", "\n"} {
		if words, err := readRequest(bufio.NewReader(strings.NewReader(bad))); err == nil {
			t.Errorf("%q: %q", bad, words)
		}
	}
}
