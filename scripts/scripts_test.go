package scripts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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

func TestScripts_HeaderBeginsWithTheName(t *testing.T) {
	for pattern, says := range map[string]string{"*.lua": ": ", "prelude/*.lua": ": prelude of ", "form/*.lua": ": form of "} {
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
	for pattern, folder := range map[string]string{"*.lua": "", "prelude/*.lua": "prelude/", "form/*.lua": "form/"} {
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
		body := strings.Join(code(strings.Split(whole(t, s.body), "\n")), "\n")
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
	for _, s := range scripts(t, "prelude/*.lua") {
		if byIndex.MatchString(s.body) {
			t.Errorf("%s: a prelude knows no parameters of scripts", s.file)
		}
	}
}

// bodies are preludes that are no functions, but a part of the scripts that name them.
var bodies = []string{"pass_on", "lock"}

// whole puts bodies into the places that name them.
func whole(t *testing.T, text string) string {
	for _, body := range bodies {
		text = names(body).ReplaceAllStringFunc(text, func(line string) string {
			return line + "\n" + scripts(t, "prelude/"+body+".lua")[0].body
		})
	}
	return text
}

// names matches the line that names a prelude.
func names(prelude string) *regexp.Regexp {
	return regexp.MustCompile(`-- prelude:(?: \w+)* ` + prelude + `(?: \w+)*\n`)
}

// allowed are the numbers in scripts that need no name: a second has a thousand milliseconds, and so on.
var allowed = []string{"(time[2] / 1000)", "time[1] * 1000", ".. '000')", "2^53"}

// A number that says how many, how long or how large is one of internal/protocol/scripts.go, with its reason.
func TestScripts_NumbersHaveNames(t *testing.T) {
	for _, pattern := range []string{"*.lua", "prelude/*.lua"} {
		for _, s := range scripts(t, pattern) {
			for _, line := range code(strings.Split(s.body, "\n")) {
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

// A line that names preludes stands between empty lines, or begins a block, and names none
// that the script has by then.
func TestScripts_NamePreludesOnce(t *testing.T) {
	for _, s := range scripts(t, "*.lua") {
		text := s.header + "\n" + s.body
		lines := regexp.MustCompile(`(\n|then|else)\n( *)-- prelude:(( \w+)+)\n\n`).FindAllStringSubmatch(text, -1)
		if strings.Count(text, "-- prelude:") != len(lines) {
			t.Errorf("%s: a line that names preludes stands elsewhere", s.file)
		}
		var named []string
		for _, line := range lines {
			if line[2] == "" { // what a block defines, another does not know
				named = append(named, strings.Fields(line[3])...)
			}
		}
		slices.Sort(named)
		if len(slices.Compact(slices.Clone(named))) != len(named) {
			t.Errorf("%s: preludes %v, one of them twice", s.file, named)
		}
	}
}

// parameters are the names that a script has from its beginning: those with a position of their own, where it does not say which.
func (s *script) parameters() string {
	line := "-- names:"
	for text := range strings.Lines(s.header) {
		if p := parameter.FindStringSubmatch(text); p != nil && !strings.Contains(p[1], "i") {
			if regexp.MustCompile(`-- names:[\w ]* ` + p[2] + `\b`).MatchString(s.body) {
				return ""
			}
			line += " " + p[2]
		}
	}
	return line + "\n"
}

// What the header of a body says that it uses of the script is there.
func TestScripts_HaveWhatTheirBodiesUse(t *testing.T) {
	for _, body := range bodies {
		header := scripts(t, "prelude/"+body+".lua")[0].header
		_, list, _ := strings.Cut(header, "It uses of the script\n")
		list, _, _ = strings.Cut(list, "\n-- and sets ")
		used := map[string][]string{"lock": {"id"}}[body]
		for line := range strings.Lines(list) {
			words := regexp.MustCompile(`^--   ((?:\w+, )*\w+) {2,}`).FindStringSubmatch(line)
			if words == nil {
				t.Fatalf("cannot read %q", line)
			}
			used = append(used, strings.Split(words[1], ", ")...)
		}
		users := 0
		for _, s := range scripts(t, "*.lua") {
			text := whole(t, s.body)
			at := names(body).FindStringIndex(text)
			if at == nil {
				continue
			}
			users++
			for _, name := range used {
				if before := s.parameters() + text[:at[0]]; !regexp.MustCompile(`(?:local [\w, ]*|-- names:[\w ]*)\b` + name + `\b`).MatchString(before) {
					t.Errorf("%s: no local %s before the prelude %s", s.file, name, body)
				}
			}
		}
		if users < 2 {
			t.Errorf("%d scripts have %s", users, body)
		}
	}
}
