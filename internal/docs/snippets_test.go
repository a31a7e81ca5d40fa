package docs

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// userDocs are the documents whose commands and snippets are checked here. The others
// have tests of their own.
func userDocs(t *testing.T) []string {
	t.Helper()
	return append([]string{"README.md", "docs/CHOOSING.md", "docs/GUIDE.md", "docs/OPTIONS.md", "docs/PERFORMANCE.md", "docs/SAFETY.md", "docs/SETUP.md", "docs/TESTING.md"}, glob(t, "examples/*.md", "examples/*/*.md", "contrib/*/README.md")...)
}

func glob(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	inModule()
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", p, len(found), err)
		}
		files = append(files, found...)
	}
	return files
}

// blocks returns the fenced blocks of a language.
func blocks(text, language string) (found []string) {
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// tidy makes code comparable: lines without indentation and alignment.
func tidy(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.Join(strings.Fields(line), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// Each snippet is in a Go file that is compiled, mostly one that a test runs.
func TestDocs_SnippetsAreCode(t *testing.T) {
	var code strings.Builder
	for _, f := range glob(t, "example*_test.go", "internal/docs/readme_test.go", "bench/miniredis/*_test.go", "examples/*/*.go", "contrib/*/*_test.go", "holdfasttest/*_test.go") {
		code.WriteString(tidy(read(t, f)))
	}
	all, n := code.String(), 0
	for _, f := range userDocs(t) {
		for _, language := range []string{"go", "lua", "sql"} {
			for _, snippet := range blocks(read(t, f), language) {
				n++
				if strings.HasPrefix(snippet, "package main") {
					continue // TestREADME_ProgramIsTheExample, TestGuide_ProgramRuns, TestDocs_AdaptersAreListed
				}
				if language != "go" {
					snippet = strings.TrimSuffix(snippet, "\n") // it ends with a quote in the code
				}
				if !strings.Contains(all, strings.TrimSuffix(tidy(snippet), "\n")) {
					t.Errorf("%s: this is in no Go file:\n%s", f, snippet)
				}
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d snippets found", n)
	}
}

// unrunnable are commands that no test can run, and why.
var unrunnable = map[string]string{
	"go get github.com/holdfast-go/holdfast":                   "the module is not published yet",
	"go get github.com/holdfast-go/holdfast/contrib/gocron":    "nor is this one",
	"go get github.com/holdfast-go/holdfast/contrib/asynq":     "nor is this one",
	"go get github.com/holdfast-go/holdfast/contrib/tusd":      "nor is this one",
	"go get github.com/holdfast-go/holdfast/contrib/goose":     "nor is this one",
	"go get github.com/holdfast-go/holdfast/contrib/certmagic": "nor is this one",

	"git clone https://github.com/holdfast-go/holdfast && cd holdfast": "nor is the repository",
}

// What is said of make anywhere is in the Makefile.
func TestDocs_MakeTargetsExist(t *testing.T) {
	makefile, n := "\n"+read(t, "Makefile"), 0
	for _, f := range glob(t, "*.md", "*/*.md", "*/*/*.md") {
		for _, m := range regexp.MustCompile("`make ([a-z-]+)(?: ([A-Z_]+)=)?").FindAllStringSubmatch(read(t, f), -1) {
			n++
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: there is no target %s", f, m[1])
			}
			if m[2] != "" && !strings.Contains(makefile, m[2]+")") && !strings.Contains(makefile, m[2]+",") {
				t.Errorf("%s: the Makefile does not know %s", f, m[2])
			}
		}
	}
	if n < 12 {
		t.Errorf("only %d targets found", n)
	}
}

// Each command is run by CI, or is an example that its test runs.
func TestDocs_CommandsAreRun(t *testing.T) {
	ci, n := strings.Split(read(t, ".ci/run"), "\n"), 0
	example := regexp.MustCompile(`^go run \./examples/stage ([\w-]+)( --\w+)?$`)
	for _, f := range userDocs(t) {
		for line := range strings.Lines(strings.Join(blocks(read(t, f), "sh"), "")) {
			command, _, _ := strings.Cut(line, "#")
			command = strings.TrimSpace(command)
			n++
			if _, ok := unrunnable[command]; ok {
				continue
			}
			if m := example.FindStringSubmatch(command); m != nil {
				if !strings.Contains(read(t, "examples/stage/scenarios_test.go"), `"`+m[1]+m[2]+`"`) {
					t.Errorf("%s: no test runs %q", f, command)
				}
				continue
			}
			if !slices.ContainsFunc(ci, func(l string) bool { return strings.HasSuffix(strings.TrimSuffix(l, "; then"), command) }) {
				t.Errorf("%s: .ci/run does not run %q", f, command)
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d commands found", n)
	}
}

// Each example is listed, explained, and played by CI on the embedded server.
func TestExamples_AreListed(t *testing.T) {
	list := read(t, "examples/README.md")
	for _, main := range glob(t, "examples/*/main.go") {
		name := filepath.Base(filepath.Dir(main))
		if name == "stage" {
			continue
		}
		if !strings.Contains(list, "["+name+"]("+name+"/README.md)") {
			t.Errorf("examples/README.md does not list %s", name)
		}
		if n := strings.Count(read(t, main), "\n"); n > 150 {
			t.Errorf("%s has %d lines, which is too long to read", main, n)
		}
	}
	for _, recipe := range glob(t, "examples/*/recipe.go") { // make test runs their tests
		name := filepath.Base(filepath.Dir(recipe))
		if !strings.Contains(read(t, "examples/stage/scenarios_test.go"), `"`+name+` --recipe"`) {
			t.Errorf("no test plays %s", name)
		}
	}
	if !strings.Contains(read(t, ".ci/run"), ",services,") || !strings.Contains(read(t, "Makefile"), "for m in examples/*/go.mod; do") {
		t.Error(".ci/run does not run the tests of the examples that are modules of their own")
	}
}

// Each adapter shows a program that is compiled, it is tested with two versions of its library, in CI with the oldest, and README names it.
func TestDocs_AdaptersAreListed(t *testing.T) {
	for _, mod := range glob(t, "contrib/*/go.mod") {
		dir := filepath.Dir(mod)
		page := dir + "/README.md"
		if !strings.Contains(read(t, page), "```go\n"+read(t, dir+"/example/main.go")+"```\n") {
			t.Errorf("%s does not show the program of %s/example", page, dir)
		}
		if !strings.Contains(read(t, "README.md"), "]("+page+")") {
			t.Errorf("no link to %s", page)
		}
		for _, m := range []string{mod, dir + "/newest.mod"} {
			library, version, _ := strings.Cut(regexp.MustCompile(`(?m)^\t(\S+/`+filepath.Base(dir)+`(?:/v\d+)? \S+)$`).FindString(read(t, m)), " ")
			if library == "" || !strings.Contains(read(t, page), version) {
				t.Errorf("%s does not say that %q is tested", page, version)
			}
		}
	}
	if !strings.Contains(read(t, ".ci/run"), ",contrib,") || !strings.Contains(read(t, "Makefile"), "for m in contrib/*/; do for v in go $(if $(HOLDFAST_TEST_QUICK),,newest); do") {
		t.Error(".ci/run does not run the tests of contrib")
	}
}

// A reader of README finds every page, and README stays short.
func TestREADME_LeadsToEveryPage(t *testing.T) {
	text := read(t, "README.md")
	for _, page := range glob(t, "docs/*.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/internals/ARCHITECTURE.md") {
		if !strings.Contains(text, "]("+page+")") && !strings.Contains(text, "]("+page+"#") {
			t.Errorf("no link to %s", page)
		}
	}
	redistest.WantMost(t, strings.Count(text, "\n"), 160, "%d lines")
}

// within are entry points that the Example of another shows best.
var within = map[string]string{
	"Manager.Mutex":          "Mutex_Lock",
	"Manager.FairMutex":      "FairMutex",
	"Manager.RWMutex":        "RWMutex_RLock",
	"Manager.ForceUnlock":    "Lease_Done",
	"FairMutex.Lock":         "FairMutex",
	"FairMutex.TryLock":      "Mutex_TryLock",
	"FairMutex.LockAsync":    "Mutex_LockAsync",
	"RWMutex.TryLock":        "RWMutex_RLock",
	"RWMutex.TryRLock":       "RWMutex_RLock",
	"RWMutex.LockAsync":      "RWMutex_RLockAsync",
	"Multi.Lock":             "NewMulti",
	"Redlock.Lock":           "NewRedlock",
	"Redlock.TryLock":        "NewRedlock",
	"Lease.Name":             "Lease_Unlock",
	"Lease.Err":              "Lease_Valid",
	"Manager.Election":       "Election_Lead",
	"Election.Leader":        "Election_Campaign",
	"Election.Term":          "Election_Campaign",
	"Term.Number":            "Election_Lead",
	"Term.Proclaim":          "Election_Campaign",
	"Term.Resign":            "Election_Campaign",
	"Manager.Attach":         "Lease_Detach",
	"WithWanted":             "Lease_Wanted",
	"Lease.Deadline":         "Lease_Extend",
	"Lease.Permits":          "Semaphore",
	"Manager.Semaphore":      "Semaphore",
	"Semaphore.Acquire":      "Semaphore",
	"Semaphore.AcquireAsync": "Semaphore",
	"Semaphore.Locker":       "Semaphore",
	"Semaphore.SetPermits":   "Semaphore",
	"Semaphore.TryAcquire":   "Semaphore",
	"Lease.UnlockInto":       "Mutex_Lock",
	"WithLabel":              "Manager_Locks",
	"WithLease":              "New",
	"WithMeterProvider":      "WithMetricName",
	"WithPollInterval":       "Option",
	"WithDebugPage":          "WithIdentity",
	"WithHandoffSlice":       "Option",
	"WithFairPatience":       "Option",
	"WithPublishMode":        "Option",
}

// Every function and method that users call has an Example that calls it, and runs: of
// its own, or within another's.
func TestExamples_CoverTheAPI(t *testing.T) {
	var files []*ast.File
	fset := token.NewFileSet()
	calls := make(map[string]map[string]bool) // the Example's name: what it calls
	for _, f := range glob(t, "*.go") {
		file, err := parser.ParseFile(fset, f, nil, parser.ParseComments)
		must(t, err)
		if !strings.HasSuffix(f, "_test.go") {
			files = append(files, file)
			continue
		}
		for _, e := range doc.Examples(file) {
			if e.Output == "" {
				t.Errorf("Example%s has no output and is not run", e.Name)
			}
			calls[e.Name] = make(map[string]bool)
			ast.Inspect(e.Code, func(n ast.Node) bool {
				if call, ok := n.(*ast.SelectorExpr); ok {
					calls[e.Name][call.Sel.Name] = true
				}
				return true
			})
		}
	}
	pkg, err := doc.NewFromFiles(fset, files, module)
	must(t, err)
	needed := make(map[string]bool)
	need := func(symbol string) {
		needed[symbol] = true
		called := symbol[strings.Index(symbol, ".")+1:]
		own := strings.ReplaceAll(symbol, ".", "_")
		for name, does := range calls {
			if (name == own || strings.HasPrefix(name, own+"_") || name == within[symbol]) && does[called] {
				return
			}
		}
		t.Errorf("no Example%s calls %s, nor does Example%s", own, symbol, within[symbol])
	}
	for _, f := range pkg.Funcs {
		need(f.Name)
	}
	for _, typ := range pkg.Types {
		for _, f := range typ.Funcs {
			need(f.Name)
		}
		for _, m := range typ.Methods {
			if !slices.Contains([]string{"Error", "Unwrap", "String"}, m.Name) {
				need(typ.Name + "." + m.Name)
			}
		}
	}
	for symbol := range within {
		if !needed[symbol] {
			t.Errorf("there is no %s", symbol)
		}
	}
}
