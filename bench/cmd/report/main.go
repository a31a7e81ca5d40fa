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
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
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
	quick := flag.Bool("quick", false, "one round of 200 ms instead of 5 of 700 ms")
	rounds := flag.Int("rounds", 0, "number of rounds, instead of the above")
	window := flag.Duration("window", 0, "how long one measurement takes, instead of the above")
	only := flag.String("only", "", "parts of the names of the scenarios to run, with commas between")
	libraries := flag.String("libraries", "", "parts of the names of the libraries to run, with commas between")
	dir := flag.String("dir", "results", "directory of the result files; empty: write none, as with -quick, -only and -libraries unless it is given")
	readme := flag.String("readme", "", "README whose figures are to be refreshed")
	page := flag.String("page", "", "page whose table and charts are to be refreshed")
	file := flag.String("json", "", "file for the values of every round; empty: none")
	from := flag.String("from", "", "what -json wrote in an earlier run, to render again instead of measuring")
	patience := flag.Duration("patience", 0, "time that may be spent on waiting for other programs to leave the cores, instead of 2 min (10 s)")
	flag.Parse()

	plan := bench.Plan{Rounds: 5, Window: 700 * time.Millisecond, Patience: 2 * time.Minute, Only: *only, Libraries: *libraries}
	if *quick {
		plan.Rounds, plan.Window, plan.Patience = 1, 200*time.Millisecond, 10*time.Second
	}
	if *rounds > 0 {
		plan.Rounds = *rounds
	}
	if *window > 0 {
		plan.Window = *window
	}
	if *patience > 0 {
		plan.Patience = *patience
	}
	if partial := *quick || *only != "" || *libraries != ""; partial && !given("dir") {
		*dir = "" // those of the day's whole run are worth more
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
	var text bytes.Buffer
	if err := bench.Layout().Markdown(&text, found); err != nil {
		return err
	}
	if *dir != "" {
		file, err := write(*dir, found, text.Bytes())
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
	if _, err = os.Stdout.Write(text.Bytes()); err != nil {
		return err
	}
	return found.Err()
}

// given reports whether a flag is on the command line.
func given(name string) (yes bool) {
	flag.Visit(func(f *flag.Flag) { yes = yes || f.Name == name })
	return yes
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
	err := bench.Layout().DrawCharts(found, func(name string, svg io.WriterTo) error {
		var b bytes.Buffer
		if _, err := svg.WriteTo(&b); err != nil {
			return err
		}
		return os.WriteFile(report.ChartFile(file, name), b.Bytes(), 0o644)
	})
	if err != nil {
		return "", err
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
