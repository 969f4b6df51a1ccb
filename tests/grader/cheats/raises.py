# fails: raised
1 / 0
