// Command report measures Holdfast beside its peers and writes what it found to
// results/<date>.md, with charts beside it, and to standard output.
//
//	go run ./cmd/report          an hour
//	go run ./cmd/report -quick   four minutes, rougher
//
// It ends with an error if Holdfast failed or any lock did not exclude, and writes the
// rest all the same.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast/bench"
	"github.com/holdfast-go/holdfast/bench/internal/load"
	"github.com/holdfast-go/holdfast/bench/internal/report"
)

func main() {
	if load.Work() {
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run() error {
	quick := flag.Bool("quick", false, "the same as -rounds 1 -window 200ms -patience 10s")
	var plan bench.Plan
	flag.IntVar(&plan.Rounds, "rounds", 5, "number of rounds")
	flag.DurationVar(&plan.Window, "window", 700*time.Millisecond, "how long one measurement takes")
	flag.DurationVar(&plan.Patience, "patience", 2*time.Minute, "time that may be spent on waiting for other programs to leave the cores")
	flag.StringVar(&plan.Only, "only", "", "parts of the names of the scenarios to run, with commas between")
	flag.StringVar(&plan.Libraries, "libraries", "", "parts of the names of the libraries to run, with commas between")
	dir := flag.String("dir", "results", "directory of the result files; empty: write none, as with -quick, -only and -libraries unless it is given")
	readme := flag.String("readme", "", "README whose figures are to be refreshed")
	page := flag.String("page", "", "page whose table and charts are to be refreshed")
	file := flag.String("json", "", "file for the values of every round; empty: none")
	from := flag.String("from", "", "what -json wrote in an earlier run, to render again instead of measuring")
	flag.Parse()

	if *quick {
		setUnlessGiven("rounds", "1")
		setUnlessGiven("window", "200ms")
		setUnlessGiven("patience", "10s")
	}
	if *quick || plan.Only != "" || plan.Libraries != "" {
		setUnlessGiven("dir", "") // those of the day's whole run are worth more
	}
	if (*readme != "" || *page != "") && *dir == "" {
		return errors.New("-readme and -page need result files to link to: give -dir")
	}
	plan.Progress = progress()

	found, err := measureOrLoad(plan, *from)
	if err != nil {
		return err
	}

	if *file != "" {
		data, err := json.MarshalIndent(found, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*file, append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	text := bench.Layout().Markdown(found)
	if *dir != "" {
		file, err := write(*dir, found, text)
		if err != nil {
			return err
		}
		if *readme != "" {
			if err := refresh(*readme, found, file, bench.Layout().RefreshREADME); err != nil {
				return err
			}
		}
		if *page != "" {
			if err := refresh(*page, found, file, bench.Layout().RefreshPage); err != nil {
				return err
			}
		}
	}
	if _, err = os.Stdout.Write(text); err != nil {
		return err
	}
	return found.Err()
}

// setUnlessGiven sets a flag that is not on the command line.
func setUnlessGiven(name, value string) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if !given {
		_ = flag.Set(name, value) // it has been tried
	}
}

// measureOrLoad measures, or reads an earlier run from a file.
func measureOrLoad(plan bench.Plan, from string) (*report.Report, error) {
	if from == "" {
		return measure(plan)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return nil, err
	}
	found := new(report.Report)
	return found, json.Unmarshal(data, found)
}

func measure(plan bench.Plan) (*report.Report, error) {
	pinning, err := load.Pin()
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(os.Stderr, pinning)
	server, err := load.StartServer(pinning)
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return bench.Run(ctx, server, pinning, plan)
}

// write returns the path of the Markdown file.
func write(dir string, found *report.Report, text []byte) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, found.Began.Format(time.DateOnly)+".md")
	svgs, err := bench.Layout().SVGs(found)
	if err != nil {
		return "", err
	}
	for name, svg := range svgs {
		if err := os.WriteFile(report.ChartFile(file, name), svg, 0o644); err != nil {
			return "", err
		}
	}
	return file, os.WriteFile(file, text, 0o644)
}

// refresh rewrites the figures of a page.
func refresh(page string, found *report.Report, file string, with func(text []byte, r *report.Report, file string) ([]byte, error)) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if page, err = filepath.Abs(page); err != nil {
		return err
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	link, err := filepath.Rel(filepath.Dir(page), file)
	if err != nil {
		return err
	}
	if text, err = with(text, found, filepath.ToSlash(link)); err != nil {
		return err
	}
	return os.WriteFile(page, text, 0o644)
}

// progress shows what is going on at a terminal. A log gets a line for
// each tenth.
func progress() func(done, total int, what string) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return func(done, total int, what string) {
			if done*10/total != (done-1)*10/total || done == 0 {
				fmt.Fprintf(os.Stderr, "%d of %d: %s\n", done, total, what)
			}
		}
	}
	var bar *progressbar.ProgressBar
	return func(done, total int, what string) {
		if bar == nil {
			bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionClearOnFinish(),
				progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth())
		}
		bar.Describe(what)
		_ = bar.Set(done) // it is only a picture
	}
}
