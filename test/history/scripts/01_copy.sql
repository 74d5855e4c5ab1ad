COPY h (x, y, z) FROM PROGRAM 'for i in 1 2 3 4 5 6 7 8 9; do echo "0.$i,0.5,$i"; done' CSV;
SELECT check_all();
