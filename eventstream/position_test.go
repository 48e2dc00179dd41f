package eventstream

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPositionLeavesOutWhatIsMissing(t *testing.T) {
	for name, steps := range map[string][]struct {
		do   string // what happens: "push" and "miss" of Seq, "settle" up to it
		s    Stamp
		want string // the position then
	}{
		"in order": {
			{"settle", Stamp{Seq: 4}, "4"}, {"push", Stamp{5, 5}, "5"}, {"push", Stamp{8, 8}, "8"},
		},
		"what found no room comes later": {
			{"push", Stamp{1, 1}, "1"}, {"miss", Stamp{Seq: 2}, "1"}, {"push", Stamp{3, 3}, "1.3"},
			{"miss", Stamp{Seq: 4}, "1.3"}, {"push", Stamp{2, 3}, "3"}, {"push", Stamp{5, 5}, "3.5"},
			{"push", Stamp{4, 4}, "5"}, {"push", Stamp{6, 6}, "6"},
		},
		"one overtakes another": {
			{"settle", Stamp{Seq: 4}, "4"}, {"push", Stamp{6, 4}, "4.6"}, {"push", Stamp{8, 4}, "4.6.8"},
			{"push", Stamp{5, 5}, "6.8"}, {"push", Stamp{9, 9}, "9"},
		},
		"the one overtaken is for others": {
			{"push", Stamp{6, 4}, "4.6"}, {"push", Stamp{7, 7}, "7"},
		},
		"of what connect got nobody knows yet": {
			{"push", Stamp{6, 0}, "0.6"}, {"push", Stamp{9, 7}, "7.9"}, {"settle", Stamp{Seq: 8}, "9"},
		},
	} {
		var o order
		for i, step := range steps {
			switch step.do {
			case "push":
				o.push(step.s)
			case "miss":
				o.miss(step.s.Seq)
			default:
				o.settle(step.s.Seq)
			}
			want := "0-" + step.want
			if got := (Mark{Position: o.position()}).String(); got != want {
				t.Fatalf("%s: the position after step %d is %s, want %s", name, i+1, got, want)
			}
		}
	}
}

func TestPositionIsBounded(t *testing.T) {
	var o order
	for seq := range uint64(MaxBeyond + 5) {
		o.push(Stamp{10 + 2*seq, 5})
	}
	if got := o.position(); got.Seq != 0 || o.at.Beyond != nil {
		t.Errorf("when too many overtake the position is %v, want none", got)
	}
	o.push(Stamp{100, 99})
	if got := o.position(); fmt.Sprint(got) != "{100 []}" {
		t.Errorf("when they are settled the position is %v, want 100", got)
	}
	for seq := range uint64(missedMax + 1) {
		o.miss(1000 + seq)
	}
	if got := o.position(); got.Seq != 0 || o.missed != nil {
		t.Errorf("the position behind too many is %v with %d remembered, want none", got, len(o.missed))
	}
}

// Whatever overtakes what, is for others or finds no room at first: a position says of
// no message that the client has it when it has not, and of none that it has not when
// it has.
func TestPositionIsExact(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		var o order
		has, forOthers := map[uint64]bool{}, map[uint64]bool{}
		var way []Stamp // under way
		var missed []uint64
		last := uint64(1)
		o.settle(last)
		check := func(what string) {
			at := o.position()
			if at.Seq == 0 {
				return // nothing is said
			}
			for seq := uint64(2); seq <= last; seq++ {
				if at.Has(seq) != has[seq] && !forOthers[seq] {
					t.Fatalf("seed %d: after %s the position is %v; the client has %d: %v", seed, what, at, seq, has[seq])
				}
			}
		}
		for range 30 {
			switch i := r.IntN(4); {
			case i < 2 && len(way) < 8: // a broadcast begins
				last++
				settled := last
				for _, s := range way {
					settled = min(settled, s.Seq-1)
				}
				way = append(way, Stamp{last, settled})
				forOthers[last] = r.IntN(4) == 0
			case i < 3 && len(way) > 0: // one ends
				j := r.IntN(len(way))
				s := way[j]
				way = slices.Delete(way, j, j+1)
				switch {
				case forOthers[s.Seq]:
				case r.IntN(5) == 0:
					o.miss(s.Seq)
					missed = append(missed, s.Seq)
				default:
					has[s.Seq] = true
					o.push(s)
				}
				check(fmt.Sprint("the end of ", s))
			case len(missed) > 0: // there is room
				j := r.IntN(len(missed))
				seq := missed[j]
				missed = slices.Delete(missed, j, j+1)
				has[seq] = true
				o.push(Stamp{seq, 0})
				check(fmt.Sprint("room for ", seq))
			}
		}
	}
}
