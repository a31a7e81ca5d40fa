package vredis

import (
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
