package server

import (
	"sync"
	"testing"
)

func TestErrandsAreBoundedAndKeepTheirOrder(t *testing.T) {
	for _, most := range []int{1, 3} {
		const count = 50
		e := errands{most: most}
		var mu sync.Mutex
		var began []int
		running := 0
		var all sync.WaitGroup
		all.Add(count)
		for i := range count {
			e.do(func() {
				defer all.Done()
				mu.Lock()
				began = append(began, i)
				if running++; running > most {
					t.Errorf("%d at a time, want at most %d", running, most)
				}
				mu.Unlock()
				mu.Lock()
				running--
				mu.Unlock()
			})
		}
		all.Wait()
		for i, n := range began {
			if most == 1 && n != i {
				t.Fatalf("errand %d began as number %d: %v", n, i, began)
			}
		}
	}
}
