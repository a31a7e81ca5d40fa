package scripts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// script is one Lua file.
type script struct {
	file         string
	header, body string
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// scripts reads the Lua files of a pattern.
func scripts(t *testing.T, pattern string) (all []script) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	for _, file := range files {
		var header, body []string
		for _, line := range strings.Split(read(t, file), "\n") {
			if strings.HasPrefix(line, "--") && len(body) == 0 {
				header = append(header, line)
			} else {
				body = append(body, line)
			}
		}
		all = append(all, script{file, strings.Join(header, "\n"), strings.Join(body, "\n")})
	}
	return all
}

// code returns the lines of a text without comments and indentation.
func code(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(comment.ReplaceAllString(line, "")); line != "" {
			all = append(all, line)
		}
	}
	return all
}

var comment = regexp.MustCompile(`--.*`)

func TestScripts_HeaderBeginsWithTheName(t *testing.T) {
	for pattern, says := range map[string]string{"*.lua": ": ", "lib/*.lua": ": library of ", "form/*.lua": ": form of "} {
		for _, s := range scripts(t, pattern) {
			if !strings.HasPrefix(s.header, "-- "+filepath.Base(s.file)+says) {
				t.Errorf("%s: the header does not begin with the file's name and what it is for", s.file)
			}
			if !strings.HasSuffix(s.body, "\n") || strings.HasSuffix(s.body, "\n\n") {
				t.Errorf("%s: does not end in one newline", s.file)
			}
		}
	}
}

func TestScripts_AreListed(t *testing.T) {
	readme := read(t, "README.md")
	for pattern, folder := range map[string]string{"*.lua": "", "lib/*.lua": "lib/", "form/*.lua": "form/"} {
		for _, s := range scripts(t, pattern) {
			if !strings.Contains(readme, "`"+folder+filepath.Base(s.file)+"`") {
				t.Errorf("%s: README.md does not list it", s.file)
			}
		}
	}
}

// In a header, parameter is one with a position, which may be computed from i, and its name; rest are those from a position on.
var (
	parameter = regexp.MustCompile(`^-- (?:KEYS|ARGV)\[([\di+-]+)\] +(\w+): `)
	rest      = regexp.MustCompile(`^-- ARGV\[(\d+)\.\.\.\] `)
	byIndex   = regexp.MustCompile(`\b(?:KEYS|ARGV)\[`)
)

// A script's header is its contract: it has a name for each parameter, the code uses all of them and knows them by these names
// only, and what it returns is said.
func TestScripts_HeaderIsTheContract(t *testing.T) {
	for _, s := range scripts(t, "*.lua") {
		body := strings.Join(code(s.body), "\n")
		if byIndex.MatchString(body) {
			t.Errorf("%s: knows a parameter by its position", s.file)
		}
		described := false
		for line := range strings.Lines(s.header) {
			if !strings.HasPrefix(line, "-- KEYS[") && !strings.HasPrefix(line, "-- ARGV[") {
				continue
			}
			if from := rest.FindStringSubmatch(line); from != nil {
				described = strings.Contains(body, "unpack(ARGV, "+from[1]+")")
			} else if name := parameter.FindStringSubmatch(line); name == nil {
				t.Errorf("%s: no name in %q", s.file, line)
			} else if !regexp.MustCompile(`\b` + name[2] + `\b`).MatchString(body) {
				t.Errorf("%s: describes %s, which it does not use", s.file, name[2])
			}
		}
		if described != strings.Contains(body, "unpack(ARGV") {
			t.Errorf("%s: uses arguments from another position on than it describes", s.file)
		}
		if !strings.Contains(s.header, "\n-- Returns ") {
			t.Errorf("%s: the header does not say what it returns", s.file)
		}
	}
	for _, s := range scripts(t, "lib/*.lua") {
		if byIndex.MatchString(s.body) {
			t.Errorf("%s: a library knows no parameters of scripts", s.file)
		}
	}
}

// allowed are the numbers in scripts that need no name: a second has a thousand milliseconds, and so on.
var allowed = []string{"(time[2] / 1000)", "time[1] * 1000", ".. '000')", "2^53", "%02x", "%010x", "(byte, 16)", "% 256", "/ 256"}

// A number that says how many, how long or how large is one of internal/protocol/scripts.go, with its reason.
func TestScripts_NumbersHaveNames(t *testing.T) {
	for _, pattern := range []string{"*.lua", "lib/*.lua"} {
		for _, s := range scripts(t, pattern) {
			for _, line := range code(s.body) {
				for _, text := range allowed {
					line = strings.ReplaceAll(line, text, "")
				}
				if n := regexp.MustCompile(`\b\d{2,}`).FindString(line); n != "" {
					t.Errorf("%s: %s in %q", s.file, n, line)
				}
			}
		}
	}
}

// A file includes each library whose functions it calls, and no other, in one line behind its header.
func TestScripts_IncludeWhatTheyCall(t *testing.T) {
	library := map[string]string{} // function -> the library that has it
	for _, s := range scripts(t, "lib/*.lua") {
		for _, m := range regexp.MustCompile(`(?m)^local function (\w+)`).FindAllStringSubmatch(s.body, -1) {
			if other, twice := library[m[1]]; twice {
				t.Errorf("%s: %s has a function %s as well", s.file, other, m[1])
			}
			library[m[1]] = strings.TrimSuffix(filepath.Base(s.file), ".lua")
		}
	}
	for _, s := range slices.Concat(scripts(t, "*.lua"), scripts(t, "lib/*.lua")) {
		var includes, calls []string
		if first, _, _ := strings.Cut(strings.TrimLeft(s.body, "\n"), "\n"); strings.HasPrefix(first, "-- include: ") {
			includes = strings.Fields(first)[2:]
		}
		if n := strings.Count(s.body, "-- include:"); n > 1 || n == 1 && includes == nil {
			t.Errorf("%s: includes a library elsewhere than in one line behind its header", s.file)
		}
		for _, line := range code(s.body) {
			for _, name := range regexp.MustCompile(`[.\w]+`).FindAllString(regexp.MustCompile(`'[^']*'`).ReplaceAllString(line, ""), -1) {
				if l := library[name]; l != "" && filepath.Base(s.file) != l+".lua" && !slices.Contains(calls, l) {
					calls = append(calls, l)
				}
			}
		}
		slices.Sort(includes)
		slices.Sort(calls)
		if !slices.Equal(includes, calls) {
			t.Errorf("%s: includes %q, and calls functions of %q", s.file, includes, calls)
		}
	}
}

// Each function of a library says what it does, and is called.
func TestScripts_FunctionsAreDescribedAndCalled(t *testing.T) {
	all := ""
	for _, s := range slices.Concat(scripts(t, "*.lua"), scripts(t, "lib/*.lua")) {
		all += strings.Join(code(s.body), "\n") + "\n"
	}
	for _, s := range scripts(t, "lib/*.lua") {
		for _, m := range regexp.MustCompile(`(?m)(?:^-- (\w+) .*\n(?:--.*\n)*)?^local function (\w+)`).FindAllStringSubmatch(s.body, -1) {
			if m[1] != m[2] {
				t.Errorf("%s: no comment that begins with %s", s.file, m[2])
			}
			if len(regexp.MustCompile(`\b`+m[2]+`\b`).FindAllString(all, 2)) < 2 {
				t.Errorf("%s: %s is never called", s.file, m[2])
			}
		}
	}
}

// A script that Redis gets can be read in one go, and so can all of them.
func TestScripts_AreShort(t *testing.T) {
	const most, mostOfAll = 600, 2350
	lines := 0
	for _, pattern := range []string{"*.lua", "lib/*.lua", "form/*.lua"} {
		for _, s := range scripts(t, pattern) {
			lines += strings.Count(read(t, s.file), "\n")
		}
	}
	if lines > mostOfAll {
		t.Errorf("%d lines of Lua, %d at most", lines, mostOfAll)
	}
	for _, s := range scripts(t, "*.lua") {
		if n := strings.Count(protocol.Text(strings.TrimSuffix(s.file, ".lua")), "\n"); n > most {
			t.Errorf("%s has %d lines, as Redis gets it, %d at most", s.file, n, most)
		}
	}
}
