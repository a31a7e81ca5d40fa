package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The prose that users read, and the faults in it that a pattern can find. The patterns are for faults that made texts hard to
// read again and again; a text without them can still be bad.

// fault is a pattern that plain English has no use for.
type fault struct {
	name    string
	pattern *regexp.Regexp
	instead string
	example string // has it
}

var faults = []fault{
	{"free relative", regexp.MustCompile(`^(?:Who|Whoever|Whom|What (?:was|is|were|are|has|had|counts|remains|stands))\b[^?]*$|\b[Ww]hoever\b|\b(?:[Tt]o|[Oo]f|[Oo]ut|[Bb]y|[Ww]ith|[Ff]rom|[Ff]or|[Bb]ehind|[Tt]han|[Aa]nd) whom?\b`),
		"name the actor: a caller that, a client that", "Who wants a Mutex again asks for it."},
	{"nobody as an actor", regexp.MustCompile(`(?i)\b(?:nobody|somebody|anybody|everybody)\b`),
		"name the actor: another caller, no other process", "The lock is free, but nobody knows that."},
	{"ours and theirs", regexp.MustCompile(`(?i)\b(?:ours|theirs)\b|\b(?:Java|Redisson)'s own\b|\b[Oo]ur (?:waiters?|readers?|writers?|processes|holds?|leases?|locks?)\b`),
		"Holdfast's, Redisson's", "It is one of ours."},
	{"code that is told", regexp.MustCompile(`\b(?:is|are|was|were|be|been|being) (?:not |then )?(?:told|asked|heard)\b`),
		"notified, queried, sends a request", "The process is told of releases."},
	{"X is ErrFoo", regexp.MustCompile(`\b(?:is|are) (?:an? )?[\[*]?Err[A-Z]\w+`),
		"returns ErrFoo", "A bad option is ErrInvalidOption."},
	{"three times it", regexp.MustCompile(`(?:\b[Ii]t\b[^.?!]*){4,}`),
		"repeat the noun", "It asks for it when it is over, if it stayed away."},
	{"archaic phrase", regexp.MustCompile(`(?i)\bfor ever\b|\broad not taken\b|\band the like\b|somebody's hand|\bgive or take\b|\bwill do[;,.]|\bdoes without\b|\bafter the manner\b`),
		"forever, and so on", "The lock stays for ever."},
	{"also for even", regexp.MustCompile(`(?:^|[,;:(] |\band )[Aa]lso (?:if|in|when|where|after|between|of|by|to|for|while|with|without|under|those|one)\b`),
		"even if, including", "Do unlocks, also if fn panics."},
	{"two semicolons", regexp.MustCompile(`;[^.?!;]*;`),
		"one fact per sentence", "One waits; the next runs; both end."},
	{"at the most", regexp.MustCompile(`\bat the (?:most|least|latest|earliest)\b|\bthe least is\b`),
		"at most, no later than, minimum: 10 ms", "It waits a second at the most."},
	{"two words for one thing", regexp.MustCompile(`(?i)\bhand(?:s|ed)? ?-?over\b|\bhand-overs\b|\bgiv(?:es?|en|ing) back\b|\bgave back\b`),
		"local hand-off, remote hand-off, release", "A hand-over costs two commands."},
	{"dash", regexp.MustCompile(`[—–]`),
		"a full stop, a comma, brackets", "The lock is free — at last."},
	{"American spelling", regexp.MustCompile(`\b(?:behavior|color|favor|honor|canceled|canceling|serialize|recognize|organize|catalog|analyze)\b`),
		"British spelling", "The context is canceled."},
	{"telegram", regexp.MustCompile(`(?i)\b(?:mostly|in turns)\b, (?:and|but) not\b|\bas does\b|\bnot at all\b|\bsee there\b|\bsee above\b`),
		"a whole sentence", "It waits, as does the other."},
}

// A text of each kind that has the fault is found, and plain sentences are not.
func TestDocs_ProseFaultsAreFound(t *testing.T) {
	for _, f := range faults {
		for kind, found := range map[string][]string{
			"Markdown": markdownProse("# Title\n\nA good sentence. " + f.example + "\n"),
			"cell":     markdownProse("| a | b |\n|---|---|\n| good | " + f.example + " |\n"),
			"bullet":   markdownProse("- A good one.\n- " + strings.Replace(f.example, " ", "\n  ", 1) + "\n"),
		} {
			if hits := faultsIn(found); len(hits) == 0 {
				t.Errorf("%s: not found in a %s: %q", f.name, kind, found)
			}
		}
		if !slices.ContainsFunc(faultsIn(sentences(f.example)), func(hit string) bool { return strings.HasPrefix(hit, f.name) }) {
			t.Errorf("%s: its example does not have it", f.name)
		}
	}
	for _, good := range []string{
		"A caller that wants a Mutex again sends a request.", "The lock state is unknown.", "Do unlocks even if fn panics.",
		"Who holds the lock?", "It blocks for at most a second.", "Lock returns ErrClosed.", "What each operation costs.",
		"```go\nx := 1 // nobody; whoever; for ever\n```\n", "See [it](nobody.md) and `nobody`.",
	} {
		if hits := faultsIn(markdownProse(good)); len(hits) > 0 {
			t.Errorf("%q: %q", good, hits)
		}
	}
	file := filepath.Join(t.TempDir(), "x.go")
	if err := os.WriteFile(file, []byte("package x\n\n// Exported is told of it.\nfunc Exported() error { return errors.New(\"nobody holds the lock\") }\n\n// Info is here.\ntype Info struct {\n\tName string // what nobody reads\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if hits := faultsIn(commentProse(t, file)); len(hits) != 2 {
		t.Errorf("in doc comments: %q", hits)
	}
	if hits := faultsIn(stringProse(t, file)); len(hits) != 1 {
		t.Errorf("in strings: %q", hits)
	}
}

// The texts that users and maintainers read have no fault.
func TestDocs_ProseIsPlain(t *testing.T) {
	texts := make(map[string][]string)
	for _, f := range glob(t, "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md", "docs/*/*.md", "examples/*.md", "examples/*/*.md", "scripts/README.md", "bench/README.md") {
		texts[f] = markdownProse(read(t, f))
	}
	for _, f := range glob(t, "*.go", "holdfasttest/*.go", "debug/*.go") {
		if !strings.HasSuffix(f, "_test.go") {
			texts["comments of "+f] = commentProse(t, f)
		}
	}
	for _, f := range glob(t, "internal/engine/*.go", "internal/several/*.go") { // maintainers read all of them
		if !strings.HasSuffix(f, "_test.go") {
			texts["comments of "+f] = allCommentProse(t, f)
		}
	}
	for _, f := range glob(t, "example*_test.go") {
		texts["comments of "+f] = commentProse(t, f)
	}
	for _, f := range glob(t, "*.go", "holdfasttest/*.go", "debug/*.go", "cmd/holdfast/*.go", "internal/engine/*.go", "internal/several/*.go", "internal/command/*.go", "internal/wire/*.go") {
		if !strings.HasSuffix(f, "_test.go") {
			texts["strings of "+f] = stringProse(t, f)
		}
	}
	n := 0
	for name, text := range texts {
		n += len(text)
		for _, hit := range faultsIn(text) {
			t.Errorf("%s: %s", name, hit)
		}
	}
	if n < 2000 {
		t.Errorf("only %d sentences were read", n)
	}
}

// faultsIn returns what is wrong with sentences.
func faultsIn(all []string) (hits []string) {
	for _, s := range all {
		for _, f := range faults {
			if m := f.pattern.FindString(s); m != "" {
				hits = append(hits, f.name+" (better: "+f.instead+") in "+strconv.Quote(s))
			}
		}
	}
	return hits
}

// sentences splits a paragraph.
func sentences(paragraph string) (all []string) {
	text := strings.Join(strings.Fields(paragraph), " ")
	for s := range strings.SplitSeq(regexp.MustCompile(`([.?!:]["')*]*) `).ReplaceAllString(text, "$1\n"), "\n") {
		if s = strings.TrimLeft(s, "*\"'( "); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// markdownProse returns the sentences of a document: paragraphs, items of lists and cells of tables, without code and the targets of links.
func markdownProse(text string) (all []string) {
	text = regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(text, "")
	text = regexp.MustCompile(`(?s)<!--.*?-->|<[^>\n]+>`).ReplaceAllString(text, "")
	text = regexp.MustCompile("`[^`]*`").ReplaceAllStringFunc(text, func(code string) string {
		if strings.HasPrefix(code, "`Err") {
			return strings.Trim(code, "`")
		}
		return "CODE"
	})
	text = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(text, "$1")
	text = regexp.MustCompile(`(?m)^ *(?:[-*>]|\d+\.|#+) +(?:\[!\w+\])?`).ReplaceAllString(text, "\n\n")
	text = regexp.MustCompile(`(?m)^\|.*\|$`).ReplaceAllStringFunc(text, func(row string) string {
		return "\n\n" + strings.ReplaceAll(row, "|", "\n\n") + "\n\n"
	})
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		all = append(all, sentences(paragraph)...)
	}
	return all
}

// allCommentProse returns the sentences of all comments of a file.
func allCommentProse(t *testing.T, file string) (all []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range f.Comments {
		text := regexp.MustCompile(`(?m)^\t.*$`).ReplaceAllString(g.Text(), "\n") // code and pictures
		for paragraph := range strings.SplitSeq(text, "\n\n") {
			all = append(all, sentences(paragraph)...)
		}
	}
	return all
}

// commentProse returns the sentences of the doc comments of a file's exported symbols, methods and fields, and of its package.
func commentProse(t *testing.T, file string) (all []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	add := func(groups ...*ast.CommentGroup) {
		for _, g := range groups {
			var prose strings.Builder
			for line := range strings.Lines(g.Text()) { // nil has none
				switch {
				case strings.HasPrefix(line, "\t"): // code
					line = "\n"
				case strings.HasPrefix(line, "  - "):
					line = "\n" + line[4:]
				}
				prose.WriteString(line)
			}
			for paragraph := range strings.SplitSeq(prose.String(), "\n\n") {
				all = append(all, sentences(paragraph)...)
			}
		}
	}
	add(f.Doc)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if receiverExported(d) && (d.Name.IsExported() || strings.HasPrefix(d.Name.Name, "Example")) {
				add(d.Doc)
			}
		case *ast.GenDecl:
			exported := false
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						exported = true
						add(s.Doc, s.Comment)
						addFields(s.Type, add)
					}
				case *ast.ValueSpec:
					if s.Names[0].IsExported() {
						exported = true
						add(s.Doc, s.Comment)
					}
				}
			}
			if exported {
				add(d.Doc)
			}
		}
	}
	return all
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	name, ok := typ.(*ast.Ident)
	return ok && name.IsExported()
}

// addFields is for the exported fields of a struct, and the methods of an interface.
func addFields(typ ast.Expr, add func(...*ast.CommentGroup)) {
	var fields *ast.FieldList
	switch typ := typ.(type) {
	case *ast.StructType:
		fields = typ.Fields
	case *ast.InterfaceType:
		fields = typ.Methods
	default:
		return
	}
	for _, f := range fields.List {
		if len(f.Names) > 0 && f.Names[0].IsExported() {
			add(f.Doc, f.Comment)
		}
	}
}

// stringProse returns the texts in the code of a file: errors, log lines, help. A text has three words or more.
func stringProse(t *testing.T, file string) (all []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil && len(strings.Fields(text)) >= 3 {
				all = append(all, sentences(text)...)
			}
		}
		return true
	})
	return all
}
