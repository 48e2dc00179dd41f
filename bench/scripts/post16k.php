<?php
echo strlen($_POST['field'] ?? ''), "\n";
