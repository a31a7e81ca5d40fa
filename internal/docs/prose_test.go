package docs

import (
	"go/parser"
	"go/token"
	"regexp"
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
}

var faults = []fault{
	{"free relative", regexp.MustCompile(`^(?:Who|Whoever|Whom|What (?:was|is|were|are|has|had|counts|remains|stands))\b[^?]*$|\b[Ww]hoever\b|\b(?:[Tt]o|[Oo]f|[Oo]ut|[Bb]y|[Ww]ith|[Ff]rom|[Ff]or|[Bb]ehind|[Tt]han|[Aa]nd) whom?\b`),
		"name the actor: a caller that, a client that"},
	{"nobody as an actor", regexp.MustCompile(`(?i)\b(?:nobody|somebody|anybody|everybody)\b`),
		"name the actor: another caller, no other process"},
	{"ours and theirs", regexp.MustCompile(`(?i)\b(?:ours|theirs)\b|\b(?:Java|Redisson)'s own\b|\b[Oo]ur (?:waiters?|readers?|writers?|processes|holds?|leases?|locks?)\b`),
		"Holdfast's, Redisson's"},
	{"code that is told", regexp.MustCompile(`\b(?:is|are|was|were|be|been|being) (?:not |then )?(?:told|asked|heard)\b`),
		"notified, queried, sends a request"},
	{"X is ErrFoo", regexp.MustCompile(`\b(?:is|are) (?:an? )?[\[*]?Err[A-Z]\w+`),
		"returns ErrFoo"},
	{"three times it", regexp.MustCompile(`(?:\b[Ii]t\b[^.?!]*){4,}`),
		"repeat the noun"},
	{"archaic phrase", regexp.MustCompile(`(?i)\bfor ever\b|\broad not taken\b|\band the like\b|somebody's hand|\bgive or take\b|\bwill do[;,.]|\bdoes without\b|\bafter the manner\b`),
		"forever, and so on"},
	{"also for even", regexp.MustCompile(`(?:^|[,;:(] |\band )[Aa]lso (?:if|in|when|where|after|between|of|by|to|for|while|with|without|under|those|one)\b`),
		"even if, including"},
	{"two semicolons", regexp.MustCompile(`;[^.?!;]*;`),
		"one fact per sentence"},
	{"at the most", regexp.MustCompile(`\bat the (?:most|least|latest|earliest)\b|\bthe least is\b`),
		"at most, no later than, minimum: 10 ms"},
	{"two words for one thing", regexp.MustCompile(`(?i)\bhand(?:s|ed)? ?-?over\b|\bhand-overs\b|\bgiv(?:es?|en|ing) back\b|\bgave back\b`),
		"local hand-off, remote hand-off, release"},
	{"dash", regexp.MustCompile(`[—–]`),
		"a full stop, a comma, brackets"},
	{"American spelling", regexp.MustCompile(`\b(?:behavior|color|favor|honor|canceled|canceling|serialize|recognize|organize|catalog|analyze)\b`),
		"British spelling"},
	{"telegram", regexp.MustCompile(`(?i)\b(?:mostly|in turns)\b, (?:and|but) not\b|\bas does\b|\bnot at all\b|\bsee there\b|\bsee above\b`),
		"a whole sentence"},
}

// The texts that users and maintainers read have no fault.
func TestDocs_ProseIsPlain(t *testing.T) {
	texts := make(map[string][]string)
	for _, f := range glob(t, "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md", "docs/*/*.md", "examples/*.md", "examples/*/*.md", "contrib/*/README.md", "scripts/README.md", "bench/README.md") {
		texts[f] = markdownProse(read(t, f))
	}
	for _, f := range glob(t, "*.go", "holdfasttest/*.go", "debug/*.go", "internal/engine/*.go") {
		if !strings.HasSuffix(f, "_test.go") || strings.HasPrefix(f, "example") {
			texts["comments of "+f] = allCommentProse(t, f)
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
		text = strings.ReplaceAll(text, "\n  - ", "\n\n")
		for paragraph := range strings.SplitSeq(text, "\n\n") {
			all = append(all, sentences(paragraph)...)
		}
	}
	return all
}
