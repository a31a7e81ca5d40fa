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
	return strtod(s)
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
