// Command journeys counts the files of the library that a lock passes on its way, and how often it comes into one, and writes the
// table into docs/internals/ARCHITECTURE.md:
//
//	go run ./tools/journeys docs/internals/ARCHITECTURE.md
//
// Without an argument it prints the table. With -v it prints each journey, file by file, with the functions that are called there.
//
// It builds a program with a copy of the library whose functions record that they begin, and lets it lock and unlock beside another
// process. A visit begins with a call of a function in another file than that of the call before.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
)

// begin and end are around the table in the document.
const (
	begin = "<!-- journeys: written by tools/journeys -->\n"
	end   = "<!-- /journeys -->"
)

func main() {
	log.SetFlags(0)
	verbose := flag.Bool("v", false, "print each journey")
	flag.Parse()
	dir, err := os.MkdirTemp("", "journeys-")
	if err != nil {
		log.Fatal(err)
	}
	err = run(dir, *verbose, flag.Arg(0))
	os.RemoveAll(dir)
	if err != nil {
		log.Fatal(err)
	}
}

func run(dir string, verbose bool, document string) error {
	binary, err := build(dir)
	if err != nil {
		return err
	}
	var table strings.Builder
	table.WriteString("| journey | files | visits |\n|---|---|---|\n")
	for _, j := range journeys {
		visits, err := j.take(binary)
		if err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		if verbose {
			fmt.Printf("%s:\n\t%s\n", j.name, strings.Join(visits, "\n\t"))
		}
		files := make(map[string]bool)
		for _, v := range visits {
			file, _, _ := strings.Cut(v, ":")
			files[file] = true
		}
		fmt.Fprintf(&table, "| %s | %d | %d |\n", j.name, len(files), len(visits))
	}
	if document == "" {
		fmt.Print(table.String())
		return nil
	}
	return write(document, table.String())
}

// write replaces the table of a document.
func write(document, table string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no place for the table: %q", document, begin)
	}
	return os.WriteFile(document, []byte(before+begin+table+end+after), 0o666)
}
