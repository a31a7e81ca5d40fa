package bench

import "github.com/holdfast-go/holdfast/bench/internal/report"

// targets are the figures that Holdfast wants to reach.
var targets = []report.Target{
	{Scenario: uncontended.asked(), Unit: unitRate, Against: report.Floor, Least: true, Bound: .95},
	{Scenario: uncontended.asked(), Unit: unitCommands, Bound: 2},
	{Scenario: linger.asked(), Rows: []int{0}, Unit: unitRate, Against: report.AnyRival, Least: true, Bound: 100},
	{Scenario: linger.asked(), Rows: []int{0}, Unit: unitCommands, Bound: .01},
	{Scenario: linger.asked(), Rows: []int{0}, Unit: unitAllocs, Bound: 2.1},
	{Scenario: linger.asked(), Rows: lingerTurns, Unit: unitRate, Against: report.Plain, Least: true, Bound: .95},
	{Scenario: distinct.asked(), Rows: []int{1}, Unit: unitRate, Against: report.AnyRival, Least: true, Bound: 1.3},
	{Scenario: distinct.asked(), Rows: []int{2, 3, 4}, Unit: unitRate, Against: report.AnyRival, Least: true, Bound: 4},
	{Scenario: distinct.asked(), Rows: []int{3}, Unit: unitServer, Bound: 5},
	{Scenario: distinct.asked(), Rows: []int{3}, Unit: unitClient, Bound: 6},
	{Scenario: oneName.asked(), Rows: []int{1, 2, 3}, Unit: unitRate, Against: report.AnyRival, Least: true, Bound: 100},
	{Scenario: oneName.asked(), Rows: []int{1, 2, 3}, Unit: unitCommands, Bound: .01},
	{Scenario: oneName.asked(), Rows: []int{1, 2, 3}, Unit: unitJain, Least: true, Bound: .99},
	{Scenario: oneName.asked(), Rows: []int{1, 2, 3}, Unit: unitStarved, Bound: 0},
	{Scenario: processes.asked(), Rows: []int{0, 1, 2}, Unit: unitRate, Against: report.Floor, Least: true, Bound: .9},
	{Scenario: processes.asked(), Rows: []int{0, 1, 2}, Unit: unitCommands, Bound: 2.1},
	{Scenario: processes.asked(), Rows: []int{0, 1, 2}, Unit: unitJain, Least: true, Bound: .99},
	{Scenario: processes.asked(), Rows: []int{0, 1, 2}, Unit: unitWait + unitP99, Against: report.AWoken, Bound: .45},
	{Scenario: processes.asked(), Rows: []int{3, 4, 5}, Unit: unitRate, Against: report.AnyRival, Least: true, Bound: 20},
	{Scenario: processes.asked(), Rows: []int{3, 4, 5}, Unit: unitCommands, Bound: .1},
	{Scenario: processes.asked(), Rows: []int{3, 4, 5}, Unit: unitJain, Least: true, Bound: .99},
	{Scenario: processes.asked(), Rows: []int{3, 4, 5}, Unit: unitJainProc, Least: true, Bound: .99},
	// A poller's figure counts only the polls that came in time.
	{Scenario: handover.asked(), Unit: unitHandover + unitP50, Against: report.AWoken, Bound: .6},
	{Scenario: queue.asked(), Unit: unitLongest, Bound: 1.5},
	{Scenario: held.asked(), Rows: []int{1}, Unit: unitRenewals, Bound: .02},
	{Scenario: held.asked(), Rows: []int{1}, Unit: unitBeyond, Bound: 600},
	{Scenario: parked.asked(), Rows: []int{1}, Unit: unitPerSecond, Bound: 2},
}
