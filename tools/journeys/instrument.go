package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	library  = "github.com/holdfast-go/holdfast"
	recorder = library + "/tools/journeys/trace"
	program  = library + "/tools/journeys/program"
)

// sources returns the files of the library, by the directory that the module is in, as the Go tool lists them.
func sources() (root string, files []string, err error) {
	out, err := exec.Command("go", "list", "-deps", "-f",
		`{{if .Module}}{{if eq .Module.Path "`+library+`"}}{{.Module.Dir}}{{$d := .Dir}}{{range .GoFiles}} {{$d}}/{{.}}{{end}}{{end}}{{end}}`, library).Output()
	if err != nil {
		return "", nil, fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 {
			root, files = f[0], append(files, f[1:]...)
		}
	}
	return root, files, nil
}

// build makes the traced program in dir: with the files of the library as they are, but for a call at the beginning of each function.
func build(dir string) (binary string, err error) {
	root, files, err := sources()
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for i, file := range files {
		name, err := filepath.Rel(root, file)
		if err != nil {
			return "", err
		}
		text, err := traced(file, filepath.ToSlash(name))
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return "", err
		}
		replace[file] = to
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-overlay", list, "-o", binary, program).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
}

// traced returns the text of a file whose functions record that they begin, under this name of the file.
func traced(file, name string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	done := 0
	insert := func(at token.Pos, what string) {
		offset := set.Position(at).Offset
		out.Write(text[done:offset])
		out.WriteString(what)
		done = offset
	}
	insert(tree.Name.End(), "; import journey \""+recorder+"\"")
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			insert(f.Body.Lbrace+1, fmt.Sprintf("journey.In(%q, %q); ", name, f.Name.Name))
		}
	}
	out.Write(text[done:])
	out.WriteString("\nvar _ = journey.In\n") // a file without functions does not use the import otherwise
	return out.Bytes(), nil
}
