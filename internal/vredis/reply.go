package vredis

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A reply is one of: nil (null), int64, string (bulk string), status, replyError, double, []any
// (array), mapReply, setReply, pushReply, nullArray.
type (
	status     string
	replyError string
	double     float64
	mapReply   []any // keys and values in turn
	setReply   []any
	pushReply  []any
	nullArray  struct{}
	silent     struct{} // no reply: the command has written its own
)

const (
	statusOK  = status("OK")
	wrongType = replyError("WRONGTYPE Operation against a key holding the wrong kind of value")
	notInt    = replyError("ERR value is not an integer or out of range")
	notFloat  = replyError("ERR value is not a valid float")
	syntaxErr = replyError("ERR syntax error")
	noSuchKey = replyError("ERR no such key")
)

// errorf makes an error of one line, as Redis does: a script that catches the error sees no line breaks either.
func errorf(format string, args ...any) replyError {
	return replyError(oneLine.Replace(fmt.Sprintf(format, args...)))
}

// notDone is the reply to what real servers do and this one does not.
func notDone(what string) replyError { return replyError("ERR vredis does not do " + what) }

func integer(n int) int64 { return int64(n) }

func boolean(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// formatDouble is C's %.17g, as Redis 7.0 writes floating-point numbers.
func formatDouble(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	return formatG(f, 17)
}

// formatG is C's %.<precision>g.
func formatG(f float64, precision int) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f) && math.Signbit(f):
		return "-nan"
	case math.IsNaN(f):
		return "nan"
	case f == 0:
		if math.Signbit(f) {
			return "-0"
		}
		return "0"
	case f == math.Trunc(f) && math.Abs(f) < 1e14 && precision >= 14:
		return strconv.FormatInt(int64(f), 10)
	}
	text := strconv.FormatFloat(f, 'e', precision-1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	exp, _ := strconv.Atoi(exponent)
	if exp < -4 || exp >= precision {
		if strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		return mantissa + "e" + exponent
	}
	text = strconv.FormatFloat(f, 'f', max(0, precision-1-exp), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// oneLine is a text as a status or an error carries it.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

func appendLine(b []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(b, kind), int64(n), 10), '\r', '\n')
}

func appendBulk(b []byte, s string) []byte {
	return append(append(appendLine(b, '$', len(s)), s...), '\r', '\n')
}

// appendReply writes a reply in RESP2 or RESP3.
func appendReply(b []byte, proto int, v any) []byte {
	list := func(kind byte, n int, all []any) []byte {
		b = appendLine(b, kind, n)
		for _, x := range all {
			b = appendReply(b, proto, x)
		}
		return b
	}
	aggregate := func(kind byte) byte {
		if proto == 3 {
			return kind
		}
		return '*'
	}
	switch v := v.(type) {
	case silent:
		return b
	case nil:
		if proto == 3 {
			return append(b, "_\r\n"...)
		}
		return append(b, "$-1\r\n"...)
	case nullArray:
		if proto == 3 {
			return append(b, "_\r\n"...)
		}
		return append(b, "*-1\r\n"...)
	case int64:
		return append(strconv.AppendInt(append(b, ':'), v, 10), '\r', '\n')
	case string:
		return appendBulk(b, v)
	case status:
		return append(append(append(b, '+'), oneLine.Replace(string(v))...), '\r', '\n')
	case replyError:
		return append(append(append(b, '-'), oneLine.Replace(string(v))...), '\r', '\n')
	case double:
		if proto == 3 {
			return append(append(append(b, ','), formatDouble(float64(v))...), '\r', '\n')
		}
		return appendBulk(b, formatDouble(float64(v)))
	case []any:
		return list('*', len(v), v)
	case mapReply:
		if proto == 3 {
			return list('%', len(v)/2, v)
		}
		return list('*', len(v), v)
	case setReply:
		return list(aggregate('~'), len(v), v)
	case pushReply:
		return list(aggregate('>'), len(v), v)
	}
	panic(fmt.Sprintf("vredis: no reply of %T", v))
}

// parseInt reads an integer as Redis does: no sign but -, no leading zero, no space.
func parseInt(s string) (int64, bool) {
	if s == "" || len(s) > 20 || s[0] == '+' || s == "-0" {
		return 0, false
	}
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] < '0' || digits[0] > '9' || len(digits) > 1 && digits[0] == '0' || strings.Contains(digits, "_") {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// parseFloat reads a number as strtod does, all of it.
func parseFloat(s string) (float64, bool) {
	if s == "" || strings.ContainsAny(s, "_ \t\n\v\f\r\x00") {
		return 0, false
	}
	f, ok := strtod(s)
	literal := strings.ContainsAny(strings.TrimLeft(s, "+-")[:1], "iI")
	if math.IsInf(f, 0) && !literal || f == 0 && strings.ContainsAny(strings.SplitN(strings.ToLower(s), "e", 2)[0], "123456789") && !strings.ContainsAny(s, "xX") {
		return 0, false // ERANGE
	}
	return f, ok
}

// atoi reads the number that a text begins with, as Redis does to find the keys of a script.
func atoi(s string) int {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || end == 0 && (s[0] == '-' || s[0] == '+')) {
		end++
	}
	n, _ := strconv.ParseInt(strings.TrimPrefix(s[:end], "+"), 10, 32)
	return int(n)
}

// strtoul reads a cursor as C does: with a sign, and nothing is 0.
func strtoul(s string) (uint64, bool) {
	if s == "" {
		return 0, true
	}
	digits := strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	if len(s)-len(digits) > 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if s[0] == '-' {
		n = -n
	}
	return n, err == nil
}

func strtod(s string) (float64, bool) {
	body := strings.ToLower(strings.TrimLeft(s, "+-"))
	if len(s)-len(body) > 1 {
		return 0, false
	}
	if strings.HasPrefix(body, "0x") && !strings.Contains(body, "p") {
		s += "p0"
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) || strings.Contains(s, "_") {
		return 0, false
	}
	return f, true
}

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
