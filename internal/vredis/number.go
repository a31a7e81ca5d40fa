package vredis

import (
	"math"
	"strconv"
	"strings"
)

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
