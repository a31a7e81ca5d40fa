package vredis

// match reports whether s matches a pattern of Redis: *, ?, [a-z], [^a] and \.
func match(pattern, s string) bool {
	for len(pattern) > 0 {
		switch pattern[0] {
		case '*':
			for len(pattern) > 1 && pattern[1] == '*' {
				pattern = pattern[1:]
			}
			if len(pattern) == 1 {
				return true
			}
			for i := 0; i <= len(s); i++ {
				if match(pattern[1:], s[i:]) {
					return true
				}
			}
			return false
		case '?':
			if s == "" {
				return false
			}
		case '[':
			if s == "" {
				return false
			}
			i := 1
			not := i < len(pattern) && pattern[i] == '^'
			if not {
				i++
			}
			found := false
			for ; i < len(pattern) && pattern[i] != ']'; i++ {
				switch {
				case pattern[i] == '\\' && i+1 < len(pattern):
					i++
					found = found || pattern[i] == s[0]
				case i+2 < len(pattern) && pattern[i+1] == '-':
					low, high := min(pattern[i], pattern[i+2]), max(pattern[i], pattern[i+2])
					found = found || low <= s[0] && s[0] <= high
					i += 2
				default:
					found = found || pattern[i] == s[0]
				}
			}
			if found == not {
				return false
			}
			pattern, s = pattern[min(i+1, len(pattern)):], s[1:]
			continue
		default:
			if pattern[0] == '\\' && len(pattern) > 1 {
				pattern = pattern[1:]
			}
			if s == "" || pattern[0] != s[0] {
				return false
			}
		}
		pattern, s = pattern[1:], s[1:]
	}
	return s == ""
}
