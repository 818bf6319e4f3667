// Command mutate measures whether the tests notice a changed condition. It draws conditions of
// the packages of targets.go, compiles the tests with all changes of them through `go test -overlay`, so that no file of the
// repository changes, and selects one change at a time. It runs the tests of the package itself, and where these pass, those
// of other packages. It ends with status 1 if too few changes fail a test.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The shares of changes that have to fail a test of the package itself, and of any package.
const (
	ownShare = 0.85
	anyShare = 0.97
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("mutate", flag.ExitOnError)
	seed := flags.Int("seed", 1, "which conditions are drawn")
	count := flags.Int("count", 60, "how many conditions are drawn")
	match := flags.String("match", "", "draw only what matches a pattern, such as ^internal/limit/ or KeyState.Allows, as it is listed")
	from := flags.Int("from", 1, "the number of the first change that is made, to go on with a run that was interrupted")
	list := flags.Bool("list", false, "only list what is drawn")
	own := flags.Bool("own", false, "run only the tests of the package itself")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*match)
	if err != nil {
		return err
	}
	known, err := readEquivalent("tools/mutate/equivalent.txt")
	if err != nil {
		return err
	}
	var perTarget [][]mutant
	for _, t := range targets() {
		all, err := conditions(t)
		if err != nil {
			return err
		}
		perTarget = append(perTarget, all)
	}
	stale := known.match(perTarget)
	for i := range perTarget {
		perTarget[i] = slices.DeleteFunc(perTarget[i], func(m mutant) bool { return !pattern.MatchString(m.String()) })
	}
	drawn := draw(perTarget, *seed, *count)
	if *list {
		for _, m := range drawn {
			fmt.Println(m)
		}
		return nil
	}
	r, err := newRunner(drawn)
	if err != nil {
		return err
	}
	defer r.close()
	r.ownOnly = *own
	err = r.judgeAll(drawn, *from)
	for _, key := range stale {
		err = errors.Join(err, fmt.Errorf("equivalent.txt: there is no condition %q: remove it", key))
	}
	return err
}

// judgeAll prints a row for each mutant, beginning with the number from, and the result.
func (r *runner) judgeAll(drawn []mutant, from int) error {
	var s score
	for _, m := range drawn {
		if m.number < from {
			continue
		}
		began := time.Now()
		v, by, err := r.judge(m)
		if err != nil {
			return err
		}
		fmt.Printf("%2d  %-14s %5s  %s", m.number, v, time.Since(began).Round(time.Second), m)
		if by != "" {
			fmt.Printf("  [%s]", by)
		}
		fmt.Println()
		s.add(m, v)
	}
	fmt.Print(s.report(r.ownOnly))
	if !s.enough(r.ownOnly) {
		return fmt.Errorf("too few changes fail a test: add tests of what survived, or its reason to tools/mutate/equivalent.txt")
	}
	return nil
}

// score counts verdicts.
type score struct {
	counts    map[verdict]int
	survivors []string
}

func (s *score) add(m mutant, v verdict) {
	if s.counts == nil {
		s.counts = map[verdict]int{}
	}
	s.counts[v]++
	switch v {
	case elsewhere:
		s.survivors = append(s.survivors, "own tests pass:  "+m.String())
	case survived:
		s.survivors = append(s.survivors, "no test fails:   "+m.String())
	case equivalent:
		s.survivors = append(s.survivors, "equivalent:      "+m.String()+"\n                 "+m.reason)
	}
}

// shares are of the mutants that change something.
func (s *score) shares() (own, all float64) {
	total := float64(max(1, s.total()))
	return float64(s.counts[killed]) / total, float64(s.counts[killed]+s.counts[elsewhere]) / total
}

func (s *score) total() int { return s.counts[killed] + s.counts[elsewhere] + s.counts[survived] }

// enough: the shares are reached, or, where no other tests were run, the first of them.
func (s *score) enough(ownOnly bool) bool {
	own, all := s.shares()
	return s.total() > 0 && own >= ownShare && (ownOnly || all >= anyShare)
}

func (s *score) report(ownOnly bool) string {
	own, all := s.shares()
	text := fmt.Sprintf("\n%d changes; %d more are equivalent\n", s.total(), s.counts[equivalent]) +
		fmt.Sprintf("fail a test of their own package: %d, %.1f %% (at least %.0f %%)\n", s.counts[killed], own*100, ownShare*100)
	if !ownOnly {
		text += fmt.Sprintf("fail a test of any package:       %d, %.1f %% (at least %.0f %%)\n", s.counts[killed]+s.counts[elsewhere],
			all*100, anyShare*100)
	}
	return text + strings.Join(append(s.survivors, ""), "\n")
}
