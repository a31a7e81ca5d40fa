package bench

import "github.com/holdfast-go/holdfast/bench/internal/report"

// sentences are the README's: the best case first, and those in which Holdfast is slowest, by machine, last.
var sentences = []report.Sentence{
	{
		Headline: report.Headline{Text: "pairs of Lock and Unlock", Scenario: processes.asked(), Row: 4, Unit: unitRate},
		Ahead:    "Holdfast gains most where many callers want one lock, here 16 goroutines in each of 4 processes",
		Behind:   "Holdfast loses where many callers want one lock, here 16 goroutines in each of 4 processes",
	}, {
		Headline: report.Headline{Text: "pairs", Scenario: processes.asked(), Row: 1, Unit: unitRate},
		Ahead:    "It gains little where each of 4 processes has one caller",
		Behind:   "It loses where each of 4 processes has one caller",
	}, {
		Headline: report.Headline{Text: "pairs", Scenario: uncontended.asked(), Row: 0, Unit: unitRate},
		Ahead:    "It gains least where a single caller takes a free lock",
		Behind:   "It loses where a single caller takes a free lock",
	}, {
		Headline: report.Headline{Text: "pairs", Scenario: distinct.asked(), Row: 1, Unit: unitRate},
		Ahead:    "On the machine of the last report it gains where each of 16 goroutines has a lock of its own",
		Behind:   "On the machine of the last report it loses where each of 16 goroutines has a lock of its own",
	},
}

// headlines are the table of docs/PERFORMANCE.md.
var headlines = []report.Headline{
	{Text: "a free lock, 1 goroutine: pairs/s", Scenario: uncontended.asked(), Row: 0, Unit: unitRate},
	{Text: "16 goroutines, each with a lock of its own: pairs/s", Scenario: distinct.asked(), Row: 1, Unit: unitRate},
	{Text: "1,000 goroutines, each with a lock of its own: pairs/s", Scenario: distinct.asked(), Row: 3, Unit: unitRate},
	{Text: "one lock, 16 goroutines: pairs/s", Scenario: oneName.asked(), Row: 1, Unit: unitRate},
	{Text: "one lock, 4 processes: pairs/s", Scenario: processes.asked(), Row: 1, Unit: unitRate},
	{Text: "one lock, 4 processes: commands per pair", Scenario: processes.asked(), Row: 1, Unit: unitCommands},
	{Text: "one lock, 4 processes of 16 goroutines: pairs/s", Scenario: processes.asked(), Row: 4, Unit: unitRate},
	{Text: "hand-off to a process that waits: median µs", Scenario: handover.asked(), Row: 0, Unit: unitHandover + unitP50},
	{Text: "the same where Redis is a round trip of 2 ms away", Scenario: handover.asked(), Row: 1, Unit: unitHandover + unitP50},
	{Text: "100 callers, 4 processes, 1 ms of work: longest wait ÷ mean", Scenario: queue.asked(), Row: 0, Unit: unitLongest},
	{Text: "fair lock, 1,000 in the queue: server µs per hand-off", Scenario: fair.asked(), Row: 1, Unit: unitServer},
	{Text: "90 % readers, 1 ms of work: sections/s", Scenario: readers.asked(), Row: 1, Unit: unitRate},
	{Text: "10,000 locks held: commands per lock and 1/3 lease", Scenario: held.asked(), Row: 1, Unit: unitRenewals},
	{Text: "10,000 waiting: commands/s", Scenario: parked.asked(), Row: 1, Unit: unitPerSecond},
}
