package docs

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// Each exported function, type and method has a comment, whose first sentence is short enough to stand alone in a list.
func TestDocs_FirstSentencesStandAlone(t *testing.T) {
	n := 0
	for dir, importPath := range map[string]string{".": module, "holdfasttest": module + "/holdfasttest"} {
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range glob(t, dir+"/*.go") {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		p, err := doc.NewFromFiles(fset, files, importPath)
		if err != nil {
			t.Fatal(err)
		}
		check := func(name, text string) {
			n++
			if first := p.Synopsis(text); first == "" || len(strings.Fields(first)) > 32 {
				t.Errorf("%s: the first sentence is %q", name, first)
			}
		}
		functions := func(of string, all []*doc.Func) {
			for _, f := range all {
				check(of+f.Name, f.Doc)
			}
		}
		functions("", p.Funcs)
		for _, typ := range p.Types {
			check(typ.Name, typ.Doc)
			functions("", typ.Funcs)
			functions(typ.Name+".", typ.Methods)
		}
	}
	if n < 80 {
		t.Errorf("only %d comments were read", n)
	}
}
