package vredis

import (
	"bytes"
	"strconv"
	"strings"
)

// ParseCommand takes one command off the front of b. It returns nil args if the rest of it is still
// to come, and a text if what is there is not RESP, after which Redis closes the connection.
func ParseCommand(b []byte) (args []string, rest []byte, wrong string) {
	line, after, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return nil, b, ""
	}
	text := strings.TrimSuffix(string(line), "\r")
	if !strings.HasPrefix(text, "*") {
		args = strings.Fields(text)
		if args == nil {
			args = []string{}
		}
		return args, after, ""
	}
	n, err := strconv.Atoi(text[1:])
	if err != nil || n > 1024*1024 {
		return nil, nil, "Protocol error: invalid multibulk length"
	}
	args = make([]string, 0, max(n, 0))
	for range n {
		line, tail, ok := bytes.Cut(after, []byte("\n"))
		if !ok {
			return nil, b, ""
		}
		if len(line) == 0 || line[0] != '$' {
			return nil, nil, "Protocol error: expected '$', got '" + string(line[:min(1, len(line))]) + "'"
		}
		size, err := strconv.Atoi(strings.TrimSuffix(string(line[1:]), "\r"))
		if err != nil || size < 0 || size > 512<<20 {
			return nil, nil, "Protocol error: invalid bulk length"
		}
		if len(tail) < size+2 {
			return nil, b, ""
		}
		args = append(args, string(tail[:size]))
		after = tail[size+2:]
	}
	return args, after, ""
}
