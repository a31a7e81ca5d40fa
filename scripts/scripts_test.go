package scripts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/wire"
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
	for pattern, says := range map[string]string{"*.lua": ": ", "prelude/*.lua": ": prelude of "} {
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
	for pattern, folder := range map[string]string{"*.lua": "", "prelude/*.lua": "prelude/"} {
		for _, s := range scripts(t, pattern) {
			if !strings.Contains(readme, "`"+folder+filepath.Base(s.file)+"`") {
				t.Errorf("%s: README.md does not list it", s.file)
			}
		}
	}
}

// params returns the parameters that a text mentions; i is an index that is computed.
func params(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(KEYS|ARGV)\[([^\]]+)\]`).FindAllStringSubmatch(text, -1) {
		index := m[2]
		if strings.Trim(index, "0123456789") != "" {
			index = "i"
		}
		all[m[1]+index] = true
	}
	if strings.Contains(text, "ipairs(KEYS)") {
		all["KEYSi"] = true
	}
	return all
}

// A script's header is its contract: every KEYS[n] and ARGV[n] that the code uses is
// described, nothing else is, and what it returns is said.
func TestScripts_HeaderIsTheContract(t *testing.T) {
	for _, s := range scripts(t, "*.lua") {
		described, used := params(s.header), params(s.body)
		for p := range used {
			if !described[p] {
				t.Errorf("%s: uses %s, which the header does not describe", s.file, p)
			}
		}
		for p := range described {
			if !used[p] {
				t.Errorf("%s: describes %s, which it does not use", s.file, p)
			}
		}
		if !strings.Contains(s.header, "\n-- Returns ") {
			t.Errorf("%s: the header does not say what it returns", s.file)
		}
	}
	for _, s := range scripts(t, "prelude/*.lua") {
		if len(params(s.body)) > 0 {
			t.Errorf("%s: a prelude knows no parameters of scripts", s.file)
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

// lock.lua is no function: what its header says that it uses of the script is there.
func TestScripts_HaveWhatTheHandOverUses(t *testing.T) {
	header := scripts(t, "prelude/lock.lua")[0].header
	_, list, _ := strings.Cut(header, "It uses of the script\n")
	list, _, _ = strings.Cut(list, "\n-- and sets ")
	var names []string
	for line := range strings.Lines(list) {
		words := regexp.MustCompile(`^--   ((?:\w+, )*\w+) {2,}`).FindStringSubmatch(line)
		if words == nil {
			t.Fatalf("cannot read %q", line)
		}
		names = append(names, strings.Split(words[1], ", ")...)
	}
	users := 0
	for _, s := range scripts(t, "*.lua") {
		at := regexp.MustCompile(`-- prelude:[ \w]* lock\b`).FindStringIndex(s.body)
		if at == nil {
			continue
		}
		users++
		for _, name := range append(names, "id") {
			if !regexp.MustCompile(`local [\w, ]*\b` + name + `\b`).MatchString(s.body[:at[0]]) {
				t.Errorf("%s: no local %s before the prelude lock", s.file, name)
			}
		}
	}
	if users < 2 {
		t.Errorf("%d scripts hand over", users)
	}
}

// What a grant reserves is what the process takes it for.
func TestScripts_ReserveAsManyTokens(t *testing.T) {
	for _, file := range []string{"lock", "grant"} {
		body := scripts(t, "prelude/"+file+".lua")[0].body
		if !strings.Contains(body, "counter, '"+strconv.Itoa(wire.TokensPerGrant)+"')") {
			t.Errorf("%s.lua does not reserve %d tokens", file, wire.TokensPerGrant)
		}
	}
}
