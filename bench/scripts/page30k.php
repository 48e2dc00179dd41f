<?php
// A page as applications make it: loops, arrays, escaping, string building.
$rows = [];
for ($i = 1; $i <= 200; $i++) {
    $rows[] = ['id' => $i, 'name' => "Article <$i>", 'price' => $i * 1.25, 'tags' => ['new', "group-" . $i % 7]];
}
usort($rows, fn (array $a, array $b) => $b['price'] <=> $a['price']);
?>
<!doctype html>
<title>Articles</title>
<table>
<?php foreach ($rows as $row): ?>
<tr id="row-<?= $row['id'] ?>" class="article"><td><?= htmlspecialchars($row['name']) ?></td><td class="price"><?= number_format($row['price'], 2) ?></td><td><?= implode(', ', array_map(htmlspecialchars(...), $row['tags'])) ?></td></tr>
<?php endforeach ?>
</table>
<p><?= str_repeat('Lorem ipsum dolor sit amet. ', 260) ?></p>
